package differential

// section is a part of the table: lines in the inline form, played in order from an empty server.
type section struct {
	name  string
	lines string
}

// table is every type of command and reply that a random script might miss. What only differs in
// size stands in sizes.
var table = []section{
	{"strings", `
SET k v
SET k "" EX 100000
GET k
GET missing
SET k v NX
SET k w XX GET
SET k v EX 0
SET k v NX XX
SET k
SETNX k x
SETEX k 100000 v
PSETEX k -1 v
GETSET k z
GETDEL k
GETEX k
APPEND k abc
STRLEN k
SETRANGE k 5 xyz
SETRANGE k -1 x
GETRANGE k 0 -1
SUBSTR k 1 2
INCR n
INCRBY n 41
INCRBY n x
DECR n
DECRBY n 9223372036854775807
INCRBYFLOAT n 1.5e2
INCRBYFLOAT n nan
INCR k
MSET a 1 b 2 c "3 \r\n"
MSET a
MSETNX a 1 d 4
MGET a b missing c
LCS a b
LCS k k IDX MINMATCHLEN 2 WITHMATCHLEN
SET "\x00\xff\r\n" "\x00*1\r\n$4\r\nPING\r\n"
GET "\x00\xff\r\n"
`},
	{"generic", `
SET k v
TYPE k
TYPE missing
EXISTS k k missing
TTL k
PTTL missing
EXPIRE k 100000
EXPIRE k 100 GT
EXPIRE k x
TTL k
EXPIREAT k 4102444800
EXPIRETIME k
PEXPIRETIME k
PERSIST k
PEXPIRE k -1
EXISTS k
SET k v
RENAME k l
RENAME k l
RENAMENX l m
COPY m n
COPY m n REPLACE
COPY m m
MOVE m 1
MOVE m 1
MOVE n 99
TOUCH n missing
UNLINK n missing
DEL n m
OBJECT ENCODING n
SET n 12
OBJECT ENCODING n
OBJECT REFCOUNT n
OBJECT IDLETIME n
OBJECT FREQ n
OBJECT HELP
OBJECT NOSUCH n
DUMP n
RESTORE r 0 "\x00\xc0\x0c\x0a\x00\x3d\x4a\x4d\x5d\x70\x6a\x72\x6c"
RESTORE r 0 junk
DBSIZE
KEYS *
KEYS nothing*
SCAN 0
SCAN x
RANDOMKEY
SORT missing
RPUSH l 3 1 2
SORT l
SORT l DESC LIMIT 0 2
SORT l ALPHA STORE s
SORT_RO l
FLUSHDB ASYNC
FLUSHALL SYNC
RANDOMKEY
`},
	{"lists", `
RPUSH l a b c
LPUSH l z ""
LPUSHX missing a
RPUSHX l d
LLEN l
LRANGE l 0 -1
LRANGE l 5 1
LINDEX l 0
LINDEX l 99
LINDEX l x
LSET l 0 first
LSET l 99 x
LSET missing 0 x
LINSERT l BEFORE a pivot
LINSERT l SIDEWAYS a pivot
LINSERT l AFTER nothing x
LREM l 0 a
LPOS l b
LPOS l b COUNT 0
LPOS l b RANK 0
LTRIM l 0 3
LPOP l
LPOP l 2
LPOP missing
LPOP missing 2
LPOP l -1
RPOP l 1
RPUSH l 1 2 3
LMOVE l m LEFT RIGHT
RPOPLPUSH l m
LMPOP 2 missing m LEFT COUNT 2
LMPOP 1 missing LEFT
LMPOP 0 m LEFT
BLPOP l 0.01
BLPOP missing 0.01
BLPOP l m x
BRPOP missing missing2 0.01
BLMOVE missing l LEFT LEFT 0.01
BRPOPLPUSH missing l 0.01
BLMPOP 0.01 1 missing LEFT
GET l
`},
	{"sets and sorted sets", `
SADD s 1 2 3
SADD s 1
SCARD s
SISMEMBER s 1
SMISMEMBER s 1 9
SMEMBERS s
SMEMBERS missing
SADD t 2 3 4
SINTER s t
SINTER s missing
SINTERCARD 2 s t LIMIT 1
SUNION s t
SDIFF s t
SINTERSTORE u s t
SUNIONSTORE u s t
SDIFFSTORE u s t
SMOVE s t 1
SREM s 2 9
SPOP missing
SPOP missing 3
SPOP s 10
SRANDMEMBER missing
SRANDMEMBER t 10
SRANDMEMBER t -9223372036854775808
SSCAN t 0
ZADD z 1 a 2 b 3 c
ZADD z NX CH INCR 1 a
ZADD z INCR 2.5 a
ZADD z nan a
ZADD z NX XX 1 a
ZSCORE z a
ZSCORE z missing
ZMSCORE z a missing
ZADD z inf top -inf bottom 1e17 big 0.1 small
ZRANGE z 0 -1 WITHSCORES
ZRANGE z (1 +inf BYSCORE LIMIT 0 2
ZRANGE z [a [c BYLEX
ZRANGE z 0 -1 REV
ZRANGESTORE y z 0 1
ZRANGEBYSCORE z -inf +inf WITHSCORES
ZREVRANGE z 0 1 WITHSCORES
ZRANGEBYLEX z - +
ZRANK z b
ZREVRANK z missing
ZCARD z
ZCOUNT z 1 2
ZCOUNT z x 2
ZLEXCOUNT z - +
ZINCRBY z 1.25 b
ZREM z a
ZPOPMIN z
ZPOPMAX z 2
ZPOPMIN missing
ZMPOP 1 z MIN COUNT 2
ZMPOP 1 missing MAX
BZPOPMIN z 0.01
BZPOPMAX missing 0.01
BZMPOP 0.01 1 missing MIN
ZADD a 1 x 2 y
ZADD b 3 y 4 w
ZUNION 2 a b WEIGHTS 2 3 AGGREGATE MAX WITHSCORES
ZINTER 2 a b WITHSCORES
ZDIFF 2 a b
ZUNIONSTORE c 2 a b
ZINTERSTORE c 2 a b
ZDIFFSTORE c 2 a b
ZINTERCARD 2 a b
ZRANDMEMBER a 10 WITHSCORES
ZRANDMEMBER missing
ZSCAN a 0
ZREMRANGEBYSCORE a 1 1
ZREMRANGEBYRANK a 0 0
ZREMRANGEBYLEX b - +
`},
	{"hashes", `
HSET h f v g ""
HSET h f
HGET h f
HGET h missing
HMSET h a 1 b 2
HMGET h a missing b
HGETALL h
HGETALL missing
HKEYS h
HVALS h
HLEN h
HEXISTS h f
HSETNX h f x
HSTRLEN h f
HINCRBY h a 5
HINCRBY h f 5
HINCRBYFLOAT h a 0.25
HDEL h f missing
HSET single f v
HRANDFIELD single
HRANDFIELD h 10 WITHVALUES
HRANDFIELD missing 1
HSCAN h 0
HGET
HGETALL h x
LPUSH h x
`},
	{"streams", `
XADD s 1-1 f v
XADD s 1-1 f v
XADD s 0-0 f v
XADD s 2-* f v g w
XADD s * odd
XADD s NOMKSTREAM MAXLEN ~ 1000 LIMIT 10 3-1 f v
XLEN s
XRANGE s - +
XRANGE s - + COUNT 1
XRANGE s x +
XREVRANGE s + -
XREAD COUNT 2 STREAMS s 0
XREAD STREAMS s missing 0
XREAD STREAMS s $
XREAD BLOCK 10 STREAMS s $
XREAD BLOCK -1 STREAMS s 0
XREAD BLOCK 10 COUNT 1 STREAMS s missing 1 0
XGROUP CREATE s g 0
XGROUP CREATE s g 0
XGROUP CREATE missing g 0
XGROUP CREATE made g $ MKSTREAM ENTRIESREAD 3
XGROUP CREATECONSUMER s g c
XGROUP NOSUCH s
XREADGROUP GROUP g c COUNT 1 STREAMS s >
XREADGROUP GROUP g STREAMS STREAMS s >
XREADGROUP GROUP g c BLOCK 10 STREAMS s >
XREADGROUP GROUP g c NOACK STREAMS s >
XREADGROUP GROUP nosuch c STREAMS s >
XREADGROUP GROUP g c STREAMS s 0
XREADGROUP GROUP g c STREAMS s made >
XPENDING s g
XPENDING s g - + 10
XPENDING s g IDLE 99999999 - + 10
XCLAIM s g other 0 1-1
XCLAIM s g other 0 1-1 JUSTID
XAUTOCLAIM s g other 0 0 COUNT 10
XAUTOCLAIM s g other 0 0 JUSTID
XACK s g 1-1 9-9
XINFO STREAM s
XINFO STREAM s FULL
XINFO STREAM missing
XINFO GROUPS s
XINFO CONSUMERS s g
XINFO HELP
XDEL s 1-1
XTRIM s MAXLEN 1
XSETID s 9-9
XSETID s 1-1
XGROUP SETID s g 0
XGROUP DELCONSUMER s g c
XGROUP DESTROY s g
`},
	{"geo, counting, bits", `
GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
GEOADD g 181 0 x
GEODIST g Palermo Catania km
GEODIST g Palermo missing
GEOHASH g Palermo missing
GEOPOS g Palermo missing
GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km ASC WITHCOORD WITHDIST WITHHASH COUNT 1 ANY
GEOSEARCH g FROMMEMBER missing BYBOX 1 1 km
GEOSEARCHSTORE h g FROMLONLAT 15 37 BYBOX 400 400 km STOREDIST
GEORADIUS g 15 37 200 km WITHDIST
GEORADIUS_RO g 15 37 200 km
GEORADIUSBYMEMBER g Palermo 200 km STORE i
GEORADIUSBYMEMBER_RO g Palermo 200 km
PFADD p a b c
PFADD p a
PFCOUNT p
PFCOUNT p missing
PFMERGE q p
PFCOUNT g
SETBIT b 7 1
SETBIT b 7 2
SETBIT b -1 1
GETBIT b 7
BITCOUNT b
BITCOUNT b 0 -1 BIT
BITPOS b 1
BITPOS b 2
BITOP AND c b b
BITOP NOT c b b
BITFIELD b SET u8 0 255 GET i8 0 INCRBY u4 4 1 OVERFLOW FAIL INCRBY u2 0 9
BITFIELD b GET u64 0
BITFIELD_RO b GET u8 0 GET u8 #1
BITFIELD_RO b SET u8 0 1
`},
	{"scripts and functions", `
EVAL "return {1,{2,{3,{4,{5,{6,{7,{8}}}}}}}}" 0
EVAL "return {'ro', redis.status_reply('OK'), redis.error_reply('E r'), false, 1.99}" 0
EVAL "return redis.error_reply('NOSPACE')" 0
EVAL "return redis.status_reply('')" 0
EVAL "return ''" 0
EVAL "return {}" 0
EVAL "return nil" 0
EVAL "redis.setresp(3) return true" 0
EVAL "redis.setresp(3) return {double=3.25}" 0
EVAL "redis.setresp(3) return {double=1/0}" 0
EVAL "redis.setresp(3) return {map={a=1}}" 0
EVAL "redis.setresp(3) return {set={a=true}}" 0
EVAL "redis.setresp(3) return {big_number='123456789012345678901234567890'}" 0
EVAL "redis.setresp(3) return {verbatim_string={format='txt',string='some\\ntext'}}" 0
EVAL "redis.setresp(3) return redis.call('hgetall', 'missing')" 0
EVAL "return redis.call('get', KEYS[1])" 1 k
EVAL "return redis.call('nosuch')" 0
EVAL "return redis.pcall('get')" 0
EVAL "return {KEYS[1], ARGV[1], ARGV[2]}" 1 k "" "\x00\r\n"
EVAL "return 1" -1
EVAL "return 1" 5 k
EVAL "return 1" x
EVAL "nonsense" 0
EVAL_RO "return redis.call('set', 'k', 'v')" 0
EVAL "local t = {} for i = 1, 200 do t = {t} end return t" 0
EVAL "local t = {} for i = 1, 8000 do t[i] = {i, tostring(i)} end return t" 0
SCRIPT LOAD "return 7"
EVALSHA 0000000000000000000000000000000000000000 0
EVALSHA 4ca238f611c9d0ae4e9a75a5dbac22aedc1e4416 0
SCRIPT EXISTS 0000000000000000000000000000000000000000 4ca238f611c9d0ae4e9a75a5dbac22aedc1e4416
SCRIPT KILL
SCRIPT NOSUCH
SCRIPT HELP
SCRIPT FLUSH
FUNCTION LOAD "#!lua name=lib\nredis.register_function('f', function(k, a) return {k, a} end)"
FUNCTION LOAD "#!lua name=lib\nredis.register_function('f', function(k, a) return {k, a} end)"
FUNCTION LOAD "bad"
FCALL f 1 k a
FCALL_RO f 0
FCALL none 0
FUNCTION LIST WITHCODE
FUNCTION STATS
FUNCTION DUMP
FUNCTION RESTORE junk
FUNCTION KILL
FUNCTION DELETE lib
FUNCTION DELETE lib
FUNCTION HELP
FUNCTION FLUSH
`},
	{"server and connection", `
PING
PING hello
PING a b
ECHO ""
ECHO
SELECT 3
SET k v
SELECT 99
SELECT x
SELECT 03
SELECT -1
GET k
SELECT 0
SWAPDB 0 3
GET k
SWAPDB 0 99
CLIENT GETNAME
CLIENT SETNAME me
CLIENT GETNAME
CLIENT SETNAME "a b"
CLIENT SETNAME ""
CLIENT GETNAME
CLIENT ID
CLIENT INFO
CLIENT LIST
CLIENT LIST TYPE nosuch
CLIENT LIST ID x
CLIENT KILL ID 987654321
CLIENT KILL 127.0.0.1:1
CLIENT KILL ID x
CLIENT UNBLOCK 987654321
CLIENT UNBLOCK x
CLIENT GETREDIR
CLIENT TRACKINGINFO
CLIENT SETINFO LIB-NAME x
CLIENT NOSUCH
CLIENT
CLIENT PAUSE x
CLIENT HELP
COMMAND COUNT
COMMAND LIST FILTERBY PATTERN xr*
COMMAND INFO get nosuch
COMMAND GETKEYS MSET a 1 b 2
COMMAND GETKEYS PING
COMMAND DOCS get
COMMAND NOSUCH
CONFIG GET maxmemory
CONFIG GET nosuch
CONFIG SET nosuch 1
CONFIG NOSUCH
INFO
INFO nosuch
TIME
LASTSAVE
ROLE
MEMORY USAGE k
MEMORY USAGE missing
MEMORY DOCTOR
LATENCY LATEST
LATENCY HISTORY x
SLOWLOG LEN
SLOWLOG GET
ACL WHOAMI
ACL CAT
ACL USERS
ACL LIST
ACL GETUSER nosuch
ACL GETUSER default
ACL DRYRUN default GET k
ACL NOSUCH
PUBSUB CHANNELS
PUBSUB NUMSUB a b
PUBSUB NUMPAT
PUBSUB SHARDNUMSUB a
PUBLISH a b
SPUBLISH a b
MODULE LIST
WAIT 0 10
WAIT 1 5
WAIT x 1
CLUSTER INFO
CLUSTER NOSUCH
READONLY
READWRITE
ASKING
DEBUG NOSUCH
NOSUCH a b c
"" a
"with space" a
"GET\r\n" a
GET
GET a b
AUTH x
AUTH default x
AUTH nobody x
AUTH a b c
HELLO 4
HELLO x
HELLO 2 SETNAME "a b"
HELLO 2 AUTH nobody x
HELLO 2 NOSUCH
HELLO
RESET x
LOLWUT VERSION 5 1 1 1
`},
	{"wrong types", `
SET str v
LPUSH list v
SADD set v
ZADD zset 1 v
HSET hash f v
XADD stream 1-1 f v
LPUSH str v
GET list
INCR set
SADD zset v
ZADD hash 1 v
HSET stream f v
XADD str 2-1 f v
XREAD STREAMS str 0
XREADGROUP GROUP g c STREAMS list >
PFADD list a
GEOADD str 1 1 a
BITCOUNT hash
SETRANGE list 0 x
LMPOP 1 str LEFT
BLPOP str 0.01
ZUNION 2 zset str
MGET str list set
EVAL "return redis.call('lpush', 'str', 'v')" 0
`},
	{"transactions", `
MULTI
SET k v
GET k
LPUSH k v
EXEC
MULTI
NOSUCH
SET k w
EXEC
MULTI
MULTI
WATCH k
EXEC
EXEC
DISCARD
MULTI
DISCARD
WATCH k
SET k x
MULTI
GET k
EXEC
WATCH k
UNWATCH
WATCH k
MULTI
EXEC
MULTI
BLPOP missing 0
XREAD BLOCK 0 STREAMS missing $
WAIT 1 0
SELECT 3
SET k three
EXEC
GET k
MULTI
HELLO 3
HGETALL missing
EXEC
HELLO 2
GET k
MULTI
GET k
RESET
GET k
MULTI
EXEC x
EXEC
`},
	{"debug protocol", `
DEBUG PROTOCOL string
DEBUG PROTOCOL integer
DEBUG PROTOCOL double
DEBUG PROTOCOL null
DEBUG PROTOCOL array
DEBUG PROTOCOL set
DEBUG PROTOCOL map
DEBUG PROTOCOL attrib
DEBUG PROTOCOL bignum
DEBUG PROTOCOL true
DEBUG PROTOCOL false
DEBUG PROTOCOL verbatim
DEBUG PROTOCOL nosuch
`},
	{"replies that look like others", `
EVAL "return redis.status_reply('RESET')" 0
ECHO "+RESET\r\n"
MULTI
EVAL "return redis.status_reply('RESET')" 0
EXEC
WATCH k
EVAL "return redis.status_reply('RESET')" 0
RESET
CLIENT GETNAME
EVAL "return redis.status_reply('QUEUED')" 0
EVAL "return redis.error_reply('MOVED 1 127.0.0.1:1')" 0
EVAL "return redis.error_reply('ASK 1 127.0.0.1:1')" 0
EVAL "return redis.error_reply('LOADING no')" 0
EVAL "return redis.error_reply('NOAUTH no')" 0
EVAL "return redis.error_reply('UNBLOCKED no')" 0
EVAL "return redis.error_reply('ERR max number of clients reached')" 0
`},
}
