package reclaim

import "context"

// wantedKey finds the client of a context.
type wantedKey struct{}

// Wanted returns ctx with the client for whom a Task is run. client ends when that has gone: what
// nobody but it wants, and has not been sent by then, need not be.
func Wanted(ctx, client context.Context) context.Context {
	return context.WithValue(ctx, wantedKey{}, client)
}

// Client returns the client for whom ctx is, or ctx itself if that is nobody's.
func Client(ctx context.Context) context.Context {
	if client, ok := ctx.Value(wantedKey{}).(context.Context); ok {
		return client
	}
	return ctx
}
