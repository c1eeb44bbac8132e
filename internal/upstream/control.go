package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// ControlKind is the kind in the control connection's name.
const ControlKind = "control"

// controlPing is how often the library asks an idle control connection whether
// it still lives, and how long it waits for the answer. It must exceed the
// pauses a healthy server makes.
const controlPing = time.Minute

// Control is the control plane: one connection, made when first needed and made
// anew after it was lost, over which the proxy asks its own questions. It uses
// the dialer's target, options and credentials. Methods are safe for concurrent
// use; each is bounded by its context, a dial also by the dialer's timeout.
type Control struct {
	dialer *Dialer
	opened atomic.Int64

	mu     sync.Mutex
	client rueidis.Client
	closed bool
}

// NewControl never waits for the server: that one may well start later. The
// error tells of an unusable configuration.
func NewControl(d *Dialer) (*Control, error) {
	c := &Control{dialer: d}
	client, err := c.newClient()
	if err != nil {
		return nil, err
	}
	c.client = client
	return c, nil
}

func (c *Control) newClient() (rueidis.Client, error) {
	var started atomic.Bool
	client, err := rueidis.NewClient(c.options(c.dialer, &started))
	started.Store(true)
	if client == nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	return client, nil
}

// Renew has the next question go over a new connection, to wherever the address leads by
// then. What is in flight on the present one has one second to finish.
func (c *Control) Renew() error {
	client, err := c.newClient()
	if err != nil {
		return err
	}
	c.mu.Lock()
	old := c.client
	if c.closed {
		old = client
	} else {
		c.client = client
	}
	c.mu.Unlock()
	old.Close()
	return nil
}

// errNotStarted answers the dial that the library insists on while it is being
// constructed, so that a server which does not answer delays nobody's start.
var errNotStarted = errors.New("control plane: not started")

// options hold the library to one small connection that neither retries nor caches nor
// opens a pool.
func (c *Control) options(d *Dialer, started *atomic.Bool) rueidis.ClientOption {
	timeout := d.Timeout
	if timeout <= 0 {
		timeout = rueidis.DefaultDialTimeout
	}
	return rueidis.ClientOption{
		InitAddress: []string{d.Target.Addr},
		SelectDB:    d.Target.DB,
		ClientName:  d.name(ControlKind),
		AuthCredentialsFn: func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			user, password, err := d.ownCredentials()
			if err != nil || password == nil {
				return rueidis.AuthCredentials{}, err
			}
			return rueidis.AuthCredentials{Username: user, Password: *password}, nil
		},
		DialCtxFn: func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if !started.Load() {
				return nil, errNotStarted
			}
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			conn, err := d.openGated(ctx)
			if err != nil {
				return nil, err
			}
			c.opened.Add(1)
			return guarded(conn), nil
		},
		Dialer:              net.Dialer{Timeout: timeout, KeepAlive: controlPing},
		ConnWriteTimeout:    controlPing,
		ClientSetInfo:       rueidis.DisableClientSetInfo,
		ForceSingleClient:   true,
		DisableCache:        true,
		DisableRetry:        true,
		AlwaysPipelining:    true,
		PipelineMultiplex:   -1,
		BlockingPipeline:    -1,
		RingScaleEachConn:   5,
		ReadBufferEachConn:  16 << 10,
		WriteBufferEachConn: 16 << 10,
	}
}

// Connections is how many connections have been opened so far: as long as it stays the
// same, whatever is answered comes from one run of one server.
func (c *Control) Connections() int64 { return c.opened.Load() }

// Close ends the control connection. What is in flight has one second to finish.
func (c *Control) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.present().Close()
}

func (c *Control) present() rueidis.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.client
}

// Ping asks whether the server serves. NotReady tells a server that is loading
// or lacks its master from one that cannot be reached (Unavailable).
func (c *Control) Ping(ctx context.Context) error {
	return c.do(ctx, "PING").Error()
}

func (c *Control) do(ctx context.Context, args ...string) rueidis.RedisResult {
	client := c.present()
	return client.Do(ctx, client.B().Arbitrary(args...).Build())
}

func (c *Control) doMulti(ctx context.Context, commands ...[]string) []rueidis.RedisResult {
	client := c.present()
	built := make([]rueidis.Completed, len(commands))
	for i, args := range commands {
		built[i] = client.B().Arbitrary(args...).Build()
	}
	return client.DoMulti(ctx, built...)
}
