// Package rawio reads from and writes to non-blocking sockets without telling the
// scheduler. The syscall package announces each call, in case it blocks; these cannot
// block, and the announcements keep the runtime's monitor thread awake, which then wakes
// fifty times a millisecond to look whether one has.
package rawio
