package proxy

import "streamproxy/internal/resp"

// This file is data: what the proxy knows of each command. Sources: the COMMAND
// replies of Redis 7.0, Redis 8.2 and Valkey 9.1, and the documentation of
// Redis to 8.8. A command may be shared only if it sends exactly one reply, at
// once, and leaves the connection as it found it.

// group gives the same route to several names.
type group struct {
	names string
	route Route
}

// argumentGroup is a group whose route the arguments may change.
type argumentGroup struct {
	names  string
	route  Route
	refine func(*entry, resp.Command) Route
}

// container is a command whose second word decides.
type container struct {
	name string
	// bare is for the name alone, other for subcommands not listed.
	bare, other Route
	subs        []group
}

var (
	sharedRead  = Route{Class: ClassShared}
	sharedWrite = Route{Class: ClassShared, Write: true}
	forGood     = Route{Class: ClassForGood, Write: true}
	urgent      = Route{Class: ClassUrgent}
)

// sharedReads never write. PFCOUNT is not among them: it may store its cache.
const sharedReads = `
	dbsize exists expiretime keys pexpiretime pttl randomkey scan clusterscan sort_ro touch ttl type dump
	digest get getbit getrange lcs mget strlen substr bitcount bitfield_ro bitpos
	hexists hexpiretime hget hgetall hkeys hlen hmget hpexpiretime hpttl hrandfield hscan hstrlen httl hvals
	lindex llen lpos lrange
	scard sdiff sinter sintercard sdiffcard sunioncard sismember smembers smismember srandmember sscan sunion
	zcard zcount zdiff zinter zintercard zlexcount zmscore zrandmember zrange zrangebylex zrangebyscore zrank
	zrevrange zrevrangebylex zrevrangebyscore zrevrank zscan zscore zunion
	geodist geohash geopos georadius_ro georadiusbymember_ro geosearch
	xlen xpending xrange xrevrange
	arcount arget argetrange argrep arinfo arlastitems arlen armget arnext arop arscan
	vcard vdim vemb vgetattr vinfo vismember vlinks vrandmember vrange
	eval_ro evalsha_ro fcall_ro
	bgrewriteaof bgsave echo lastsave lolwut pfselftest ping role save time
`

// sharedWrites may write. PUBLISH counts because replicas receive it; scripts
// and functions because nobody knows.
const sharedWrites = `
	copy del delex delifeq expire expireat migrate move persist pexpire pexpireat rename renamenx restore
	restore-asking sort swapdb unlink
	append bitfield bitop decr decrby getdel getex getset incr incrby incrbyfloat increx mset msetex msetnx psetex set
	setbit setex setnx setrange
	hdel hexpire hexpireat hgetdel hgetex hincrby hincrbyfloat hmset hpersist hpexpire hpexpireat hset hsetex hsetnx
	linsert lmove lmpop lpop lpush lpushx lrem lset ltrim rpop rpoplpush rpush rpushx
	sadd sdiffstore sinterstore smove spop srem sunionstore
	zadd zdiffstore zincrby zinterstore zmpop zpopmax zpopmin zrangestore zrem zremrangebylex zremrangebyrank
	zremrangebyscore zunionstore
	geoadd georadius georadiusbymember geosearchstore pfadd pfcount pfdebug pfmerge
	xack xackdel xadd xautoclaim xcfgset xclaim xdel xdelex xidmprecord xnack xsetid xtrim
	ardel ardelrange arinsert armset arring arseek arset vrem vsetattr
	eval evalsha fcall publish spublish replicaof slaveof
`

// ownHandling is everything outside a container that is not simply shared.
var ownHandling = []group{
	{"select", Route{Class: ClassState, Verb: VerbSelect}},
	{"hello", Route{Class: ClassState, Verb: VerbHello}},
	{"auth", Route{Class: ClassState, Verb: VerbAuth}},
	{"reset", Route{Class: ClassState, Verb: VerbReset}},
	{"quit", Route{Class: ClassState, Verb: VerbQuit}},

	{"blpop brpop brpoplpush blmove blmpop bzpopmin bzpopmax bzmpop", Route{Class: ClassBlocking, Write: true}},
	// VSIM searches in a thread of its own and keeps only its client waiting.
	{"vsim", Route{Class: ClassBlocking}},
	{"wait waitaof", Route{Class: ClassWait}},

	{"multi", Route{Class: ClassTransaction, Verb: VerbMulti}},
	{"exec", Route{Class: ClassTransaction, Verb: VerbExec, Write: true}},
	{"discard", Route{Class: ClassTransaction, Verb: VerbDiscard}},
	{"watch", Route{Class: ClassTransaction, Verb: VerbWatch}},
	{"unwatch", Route{Class: ClassTransaction, Verb: VerbUnwatch}},

	{"subscribe psubscribe ssubscribe", Route{Class: ClassSubscriber, Verb: VerbSubscribe}},
	{"unsubscribe punsubscribe sunsubscribe", Route{Class: ClassSubscriber, Verb: VerbUnsubscribe}},

	// READONLY, READWRITE and ASKING are modes of a cluster connection. DEBUG can
	// send frames that are no reply (PROTOCOL PUSH) and mark its connection.
	{"monitor sync psync replconf readonly readwrite asking debug", forGood},

	{"shutdown", Route{Class: ClassUrgent, Verb: VerbShutdown}},
	{"proxy", Route{Class: ClassLocal, Verb: VerbProxy}},

	// FAILOVER ABORT must not queue behind the writes that FAILOVER has paused. The
	// server takes POST and HOST: for an attack by a browser and hangs up.
	{"failover post host:", unknown},
}

// byArguments is everything outside a container that options can change.
var byArguments = []argumentGroup{
	{"xread", Route{Class: ClassBlocking, Verb: VerbXRead}, (*entry).readsBlocking},
	{"xreadgroup", Route{Class: ClassBlocking, Verb: VerbXReadGroup, Write: true}, (*entry).readsBlocking},
	{"flushall flushdb sflush", Route{Class: ClassBlocking, Write: true}, (*entry).flushes},
	{"vadd", sharedWrite, (*entry).addsVector},
	{"info", sharedRead, (*entry).informs},
}

// containers are routed by subcommand. One that is not listed is unknown, but
// for CLIENT, most of whose newer subcommands set a mode of the connection.
var containers = []container{
	{"client", unknown, forGood, []group{
		{"id", Route{Class: ClassState, Verb: VerbClientID}},
		{"getname", Route{Class: ClassState, Verb: VerbClientGetName}},
		{"setname", Route{Class: ClassState, Verb: VerbClientSetName}},
		{"setinfo", Route{Class: ClassState, Verb: VerbClientSetInfo}},
		{"info", Route{Class: ClassState, Verb: VerbClientInfo}},
		{"list", Route{Class: ClassState, Verb: VerbClientList}},
		{"kill", Route{Class: ClassUrgent, Verb: VerbClientKill}},
		{"unblock", Route{Class: ClassUrgent, Verb: VerbClientUnblock}},
		{"tracking", Route{Class: ClassForGood, Verb: VerbClientTracking}},
		{"caching reply no-evict no-touch capa import-source", Route{Class: ClassForGood}},
		{"maint_notifications", Route{Class: ClassLocal, Verb: VerbMaintNotifications}},
		// Without tracking, which is for good, these say "off" on every connection.
		// PAUSE stops everybody, whoever sends it.
		{"getredir trackinginfo pause help", sharedRead},
		// On a lane it could stand behind one of the writes that PAUSE WRITE holds. It writes nothing
		// that WAIT could be asked about.
		{"unpause", Route{Class: ClassUnknown}},
	}},
	{"script", unknown, unknown, []group{
		{"load flush", sharedWrite},
		{"exists show help", sharedRead},
		{"kill", urgent},
		{"debug", forGood},
	}},
	{"function", unknown, unknown, []group{
		{"load delete flush restore", sharedWrite},
		{"dump help", sharedRead},
		{"list", Route{Class: ClassUnknown, Loose: true}},
		{"kill stats", urgent},
	}},
	{"xgroup", unknown, unknown, []group{
		{"create createconsumer delconsumer destroy setid", sharedWrite},
		{"help", sharedRead},
	}},
	{"xinfo", unknown, unknown, []group{{"consumers groups stream help", sharedRead}}},
	{"object", unknown, unknown, []group{{"encoding freq idletime refcount help", sharedRead}}},
	{"memory", unknown, unknown, []group{{"doctor malloc-stats purge stats usage help", sharedRead}}},
	{"config", unknown, unknown, []group{{"get set resetstat rewrite help", sharedRead}}},
	{"acl", unknown, unknown, []group{
		{"cat deluser dryrun genpass getuser list load log save setuser users whoami help", sharedRead},
	}},
	{"command", sharedRead, unknown, []group{{"count docs getkeys getkeysandflags info list help", sharedRead}}},
	{"latency", unknown, unknown, []group{{"doctor graph histogram history latest reset help", sharedRead}}},
	{"slowlog", unknown, unknown, []group{{"get len reset help", sharedRead}}},
	{"commandlog", unknown, unknown, []group{{"get len reset help", sharedRead}}},
	{"pubsub", unknown, unknown, []group{{"channels numpat numsub shardchannels shardnumsub help", sharedRead}}},
	// Loading a module changes what commands mean.
	{"module", unknown, unknown, []group{{"list help", sharedRead}}},
	// What manages the cluster may wait for other nodes (SETSLOT) or turn its
	// connection into a replication link (SYNCSLOTS).
	{"cluster", unknown, unknown, []group{
		{`count-failure-reports countkeysinslot getkeysinslot getslotmigrations info keyslot links myid myshardid
			nodes replicas shards slaves slot-stats slots help`, sharedRead},
		{"syncslots", forGood},
	}},
}
