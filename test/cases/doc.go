// Package cases holds the proxy against failures that were reported in the field, of other proxies
// and of client libraries. Each test retells one report as the smallest thing to send and expects the
// same every time: the right reply or a clear error, nobody else touched, nothing left behind.
//
// The proxy runs within the test, with the configuration of one started without any flag unless
// the case is about a limit. Behind it stands a real server, sometimes at the end of a faulty
// link, or a scripted one where a server has to misbehave to the byte. Where the case is about memory
// or signals it runs in a process of its own. A fleet that reconnects (case 39) is tested in
// test/operations. CASES_LONG=1 runs the long forms, for a machine that does nothing else. The build tag cases keeps
// these tests out of a plain run: some of them measure time, and together they take more than three minutes.
package cases
