// A Moleculer service that listens to a channel, or its producer.
//
// Usage: moleculer_worker.js work|send URL CONSUMER FROM COUNT
// Prints "ready", then "got N" for each message. See test/streams/libraries_test.go.
"use strict";

const { ServiceBroker } = require("moleculer");
const { Middleware } = require("@moleculer/channels");

const [role, url, consumer, from, count] = process.argv.slice(2);

const broker = new ServiceBroker({
	nodeID: consumer,
	logger: false,
	middlewares: [Middleware({ adapter: { type: "Redis", options: { redis: url } } })],
});

if (role === "work") {
	broker.createService({
		name: "worker",
		channels: {
			m: {
				group: "workers",
				redis: { minIdleTime: 2000, claimInterval: 100, startID: "0" },
				handler(message) {
					console.log("got " + message.n);
				},
			},
		},
	});
}

async function main() {
	await broker.start();
	if (role === "work") {
		console.log("ready");
		return;
	}
	for (let n = Number(from); n < Number(from) + Number(count); n++) {
		await broker.sendToChannel("m", { n });
	}
	await broker.stop();
	process.exit(0);
}

main();
