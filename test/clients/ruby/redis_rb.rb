# Checks redis-rb through the proxy: one line per check, see test/clients/doc.go.
# frozen_string_literal: true

require 'redis'
require 'securerandom'

$stdout.sync = true
RUN = SecureRandom.hex(8)
CHECKS = {}

def connect(**options)
  Redis.new(host: ENV.fetch('PROXY_HOST'), port: ENV.fetch('PROXY_PORT').to_i, **options)
end

def key(name)
  "ruby:#{RUN}:#{name}"
end

def equal(got, want)
  raise "got #{got.inspect}, want #{want.inspect}" unless got == want
end

def check(name, &block)
  CHECKS[name] = block
end

# later does something a little later, while this thread waits, with a client of its own.
def later
  Thread.new do
    sleep 0.2
    yield connect
  end
end

check 'default connect' do |_|
  equal connect.ping, 'PONG'
end

check 'strings' do |r|
  value = "\x00\r\n\xFF".b
  equal r.set(key('s'), value), 'OK'
  equal r.get(key('s')).b, value
  equal r.get(key('none')), nil
  equal r.set(key('s'), ''), 'OK'
  equal r.get(key('s')), ''
end

check 'hashes' do |r|
  r.mapped_hmset(key('h'), 'a' => '1', 'b' => '')
  equal r.hgetall(key('h')), 'a' => '1', 'b' => ''
end

check 'pipeline' do |r|
  replies = r.pipelined do |p|
    500.times do |i|
      p.set(key("p#{i}"), "v#{i}")
      p.get(key("p#{i}"))
    end
  end
  equal replies, (0...500).flat_map { |i| ['OK', "v#{i}"] }
end

check 'transaction' do |r|
  equal(r.multi { |t| 2.times { t.incr(key('t')) } }, [1, 2])
end

check 'optimistic lock' do |r|
  watcher = connect
  lost = watcher.watch(key('w')) do
    r.set(key('w'), '2')
    watcher.multi { |t| t.set(key('w'), '3') }
  end
  equal lost, nil
  equal watcher.get(key('w')), '2'
end

check 'script' do |r|
  equal r.eval('return {KEYS[1], ARGV[1]}', keys: ['k'], argv: ['a']), %w[k a]
  equal r.evalsha(r.script(:load, 'return ARGV[1] * 2'), argv: [21]), 42
end

check 'functions' do |r|
  name = "ruby#{RUN}"
  text = "#!lua name=#{name}\nredis.register_function('#{name}', function(k, a) return {k[1], a[1]} end)"
  equal r.call('FUNCTION', 'LOAD', text), name
  equal r.call('FCALL', name, '1', 'k', 'a'), %w[k a]
  equal r.call('FUNCTION', 'DELETE', name), 'OK'
end

check 'blocking pop' do |r|
  pusher = later { |other| other.rpush(key('b'), 'x') }
  equal r.blpop(key('b'), timeout: 15), [key('b'), 'x']
  pusher.join
  equal r.blpop(key('b'), timeout: 1), nil
end

check 'publish' do |r|
  heard = nil
  subscriber = connect
  subscriber.subscribe(key('c')) do |on|
    on.subscribe { later { |other| other.publish(key('c'), 'hello') } }
    on.message do |_, message|
      heard = message
      subscriber.unsubscribe(key('c'))
    end
  end
  equal heard, 'hello'
  equal r.ping, 'PONG'
end

check 'streams' do |r|
  r.xgroup(:create, key('x'), 'g', '0', mkstream: true)
  id = r.xadd(key('x'), { 'a' => '1' })
  equal r.xreadgroup('g', 'c', key('x'), '>', count: 5, block: 1000), key('x') => [[id, { 'a' => '1' }]]
  equal r.xack(key('x'), 'g', id), 1
  equal r.xpending(key('x'), 'g')['size'], 0
end

check 'databases' do |r|
  three = connect(db: 3)
  three.set(key('d'), 'three')
  equal [three.get(key('d')), r.get(key('d'))], ['three', nil]
end

check 'errors' do |r|
  r.set(key('e'), 'text')
  begin
    r.incr(key('e'))
    raise 'INCR of a text succeeded'
  rescue Redis::CommandError => e
    equal e.message, 'ERR value is not an integer or out of range'
  end
end

check 'restart' do |r|
  puts 'restart'
  $stdin.gets
  deadline = Time.now + 20
  begin
    equal r.set(key('r'), 'back'), 'OK'
  rescue Redis::BaseError
    raise if Time.now > deadline

    sleep 0.05
    retry
  end
  equal r.get(key('r')), 'back'
  CHECKS['blocking pop'].call(r)
end

puts "version #{Redis::VERSION}"
client = connect
failed = CHECKS.count do |name, block|
  block.call(client)
  puts "ok #{name}"
  false
rescue StandardError => e
  puts "failed #{name} # #{e.class}: #{e.message}".tr("\n", ' ')
  true
end
exit(failed.zero? ? 0 : 1)
