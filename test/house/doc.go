// Package house holds the tests of the house itself: which room may import which, how long a
// file may be, what must be documented. The rules are data at the top of each test file.
package house
