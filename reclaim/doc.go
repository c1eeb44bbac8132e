// Package reclaim knows what stream consumers mean: which of their entries nobody
// has seen, and what has to be said to the server about them. It knows no sockets;
// what it decides travels as commands that package proxy sends.
package reclaim
