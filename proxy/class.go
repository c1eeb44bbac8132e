package proxy

// Class says how a command travels: which connection carries it and what the
// session must do around it. Each command of a client belongs to exactly one.
type Class uint8

// The classes. The zero value is ClassUnknown, so that what was never
// classified is never shared.
const (
	// ClassUnknown takes a private connection for itself: commands the proxy does
	// not know, and the few it knows and cannot vouch for.
	ClassUnknown Class = iota
	// ClassShared leaves its connection as it was and answers with exactly one
	// reply at once: it may ride a lane.
	ClassShared
	// ClassState reads or changes what the session keeps for its client: database,
	// user, protocol, name, id.
	ClassState
	// ClassBlocking may keep its connection waiting while the server serves others.
	ClassBlocking
	// ClassWait is WAIT and WAITAOF, which ask about the writes of the connection
	// that carries them.
	ClassWait
	// ClassTransaction is MULTI, WATCH and what ends them.
	ClassTransaction
	// ClassSubscriber begins or ends subscriptions.
	ClassSubscriber
	// ClassForGood changes the connection in a way that nothing undoes reliably;
	// it stays the client's until the client leaves.
	ClassForGood
	// ClassUrgent must be read by the server while it runs something else, so it
	// may not queue behind anything.
	ClassUrgent
	// ClassLocal is answered by the proxy itself.
	ClassLocal
	// ClassDenied is what the operator does not let through.
	ClassDenied

	numClasses
)

var classNames = [numClasses]string{
	"unknown", "shared", "state", "blocking", "wait", "transaction", "subscriber", "for_good", "urgent", "local", "denied",
}

// String returns the class as it stands in the metric's label.
func (c Class) String() string { return classNames[c] }

// Classes lists every class, for collectors that create their series ahead.
func Classes() []Class {
	classes := make([]Class, numClasses)
	for i := range classes {
		classes[i] = Class(i)
	}
	return classes
}

// Verb names the command where its class alone does not say what to do.
type Verb uint8

// The verbs, by class. A shared command never has one.
const (
	VerbNone Verb = iota

	// ClassState
	VerbSelect
	VerbHello
	VerbAuth
	VerbReset
	VerbQuit
	VerbClientID
	VerbClientGetName
	VerbClientSetName
	VerbClientSetInfo
	VerbClientInfo
	// VerbClientList is the server's list, whose ID filter names virtual ids.
	VerbClientList

	// ClassBlocking: the two whose wait can be taken up again on another connection.
	VerbXRead
	VerbXReadGroup

	// ClassTransaction
	VerbMulti
	VerbExec
	VerbDiscard
	VerbWatch
	VerbUnwatch

	// ClassSubscriber: each stands for the channel, pattern and shard form.
	VerbSubscribe
	VerbUnsubscribe

	// ClassForGood: its REDIRECT option names a virtual id.
	VerbClientTracking

	// ClassUrgent: the first two name virtual ids, the third has no reply when it works.
	VerbClientKill
	VerbClientUnblock
	VerbShutdown

	// ClassLocal
	VerbProxy
	// VerbProxyInfo is INFO with the single section "streamproxy".
	VerbProxyInfo
	VerbMaintNotifications
)

// Route is the classification of one command.
type Route struct {
	Class Class
	Verb  Verb
	// Loose is set if its reply may be more than one frame, see loose.go. Its class is
	// ClassUnknown; but it leaves the connection as it was.
	Loose bool
	// Write is set if the command may write, and when that is not known. WAIT
	// follows the connection of the last one.
	Write bool
}
