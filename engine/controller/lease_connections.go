package controller

import (
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// Between the look at the Lease for a request and its first byte, a process may stand still: its machine stops it, it waits for a connection,
// or for its turn on one. So the Lease is looked at again for each piece that goes to the network, as long as there is a write
// among the requests that have not been sent whole.
//
//	leaseTransport ── the request got a connection ──> leaseConnection.unsent + 1
//	the library     ── some bytes ──> leaseConnection.Write ── expired, and unsent > 0 ──> error, and the connection ends
//	leaseTransport ── the request was sent whole ──> leaseConnection.unsent - 1
//
// Requests share a connection by HTTP/2, and TLS encrypts them, so a connection cannot tell whose bytes it gets: reads that share it fail
// as well, and are repeated on another one. What remains is the time between the second look and the call of the system.

// leaseConnections are the open connections of clients that may write, by their addresses: libraries wrap a connection, and only its
// addresses stay the same.
type leaseConnections struct {
	lease *leaseExpiry

	mu   sync.Mutex
	open map[string]*leaseConnection
}

// A leaseConnection is a connection that sends nothing of a write once the Lease has expired.
type leaseConnection struct {
	net.Conn

	of *leaseConnections
	// unsent is how many writes use the connection that have not been sent whole.
	unsent atomic.Int64
}

// addressesOf returns what identifies an open connection.
func addressesOf(c net.Conn) string { return c.LocalAddr().String() + " " + c.RemoteAddr().String() }

// dial lets a configuration make such connections.
func (l *leaseConnections) dial(config *rest.Config) {
	connect := config.Dial
	if connect == nil {
		connect = (&net.Dialer{Timeout: connectTimeout, KeepAlive: connectKeepAlive}).DialContext
	}
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := connect(ctx, network, address)
		if err != nil {
			return nil, err
		}
		out := &leaseConnection{Conn: c, of: l}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open[addressesOf(c)] = out
		return out, nil
	}
}

// Write implements net.Conn.
func (c *leaseConnection) Write(b []byte) (int, error) {
	if c.unsent.Load() > 0 {
		if err := c.of.lease.check(); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *leaseConnection) Close() error {
	c.of.mu.Lock()
	if key := addressesOf(c.Conn); c.of.open[key] == c { // the system may have given the address to another one
		delete(c.of.open, key)
	}
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// of returns the connection that a library has wrapped, or nil if it is none of these.
func (l *leaseConnections) of(c net.Conn) *leaseConnection {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[addressesOf(c)]
}

// A leaseRequest is a write on its way. It has been sent once the library says so and has returned: by HTTP/1.1, it says so
// before the last bytes leave its buffer, and by HTTP/2, it may return before it has stopped to send. One that was broken off
// earlier counts for good, which ends the connection when the Lease expires, and nothing else.
type leaseRequest struct {
	connections *leaseConnections

	mu              sync.Mutex
	on              *leaseConnection
	wrote, returned bool
}

// roundTrip sends a request by a connection that knows of it. The library tries a request that failed on another connection, so
// it may have several, one after the other.
func (r *leaseRequest) roundTrip(rt http.RoundTripper, req *http.Request) (*http.Response, error) {
	defer r.note(&r.returned)
	return rt.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn:      func(info httptrace.GotConnInfo) { r.use(r.connections.of(info.Conn)) },
		WroteRequest: func(httptrace.WroteRequestInfo) { r.note(&r.wrote) },
	})))
}

// use notes the connection of the request; nil is none.
func (r *leaseRequest) use(c *leaseConnection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leave()
	r.wrote = false
	if r.on = c; c != nil {
		c.unsent.Add(1)
	}
}

// note notes one of the two signs that the request was sent.
func (r *leaseRequest) note(sign *bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*sign = true
	if r.wrote && r.returned {
		r.leave()
	}
}

// leave ends the use of the connection.
func (r *leaseRequest) leave() {
	if r.on != nil {
		r.on.unsent.Add(-1)
		r.on = nil
	}
}
