package controller

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// A leaseBench is an API server that notes which requests reached it whole, and a client whose Lease runs out by a clock of its own.
type leaseBench struct {
	server *httptest.Server
	client *http.Client
	lease  *leaseExpiry

	mu      sync.Mutex
	now     time.Time
	arrived []string
	// onDial and onConnection are called when a request has to wait for a connection, and when it has got one.
	onDial, onConnection func()
}

// leaseProtocols are the forms of connections that clients have. The files of a certificate are read again by the library, which
// wraps connections for that.
var leaseProtocols = map[string]func(*testing.T, *httptest.Server, *rest.Config){
	"HTTP/2":            func(_ *testing.T, s *httptest.Server, _ *rest.Config) { s.EnableHTTP2 = true; s.StartTLS() },
	"HTTP/1.1 by TLS":   func(_ *testing.T, s *httptest.Server, _ *rest.Config) { s.StartTLS() },
	"HTTP/1.1":          func(_ *testing.T, s *httptest.Server, _ *rest.Config) { s.Start() },
	"certificate files": useCertificateFiles,
}

func useCertificateFiles(t *testing.T, s *httptest.Server, config *rest.Config) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("operator", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config.CertFile, config.KeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if err := errors.Join(os.WriteFile(config.CertFile, certificate, 0o600), os.WriteFile(config.KeyFile, key, 0o600)); err != nil {
		t.Fatal(err)
	}
	s.EnableHTTP2 = true
	s.StartTLS()
}

func newLeaseBench(t *testing.T, start func(*testing.T, *httptest.Server, *rest.Config)) *leaseBench {
	t.Helper()
	b := &leaseBench{now: time.Now(), onDial: func() {}, onConnection: func() {}}
	b.lease = newLeaseExpiry(b.clock)
	b.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return // it has not arrived whole, and an API server stores nothing of it
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.arrived = append(b.arrived, r.Method+" "+r.URL.Path)
		w.WriteHeader(http.StatusOK)
	}))
	config := &rest.Config{}
	start(t, b.server, config)
	t.Cleanup(b.server.Close)
	config.Host = b.server.URL
	if c := b.server.Certificate(); c != nil {
		config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
	}
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		b.onDial()
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	b.lease.guard(config)
	var err error
	if b.client, err = rest.HTTPClientFor(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.client.CloseIdleConnections)
	return b
}

func (b *leaseBench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

// stop is what it is for the process that its machine stops it for a minute.
func (b *leaseBench) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(time.Minute)
}

// send sends a request, and returns why it was not answered.
func (b *leaseBench) send(ctx context.Context, method, path string, body io.Reader) error {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { b.onConnection() }})
	req, err := http.NewRequestWithContext(ctx, method, b.server.URL+path, body)
	if err != nil {
		return err
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (b *leaseBench) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.arrived)
}

// stoppingBody stops the process once its first half was read.
type stoppingBody struct {
	stop  func()
	reads int
}

func (s *stoppingBody) Read(into []byte) (int, error) {
	s.reads++
	switch s.reads {
	case 1:
		return copy(into, strings.Repeat("a", 1000)), nil
	case 2:
		s.stop()
		return copy(into, strings.Repeat("b", 1000)), nil
	default:
		return 0, io.EOF
	}
}

// TestW46AProcessThatIsStoppedWhileItSendsSendsNoByteAfterwards stops a process after the Lease was looked at for a request, at each
// place where that can take long.
func TestW46AProcessThatIsStoppedWhileItSendsSendsNoByteAfterwards(t *testing.T) {
	t.Parallel()
	const path = "/api/v1/namespaces/a/configmaps/x"
	rows := map[string]struct {
		prepare func(*leaseBench)
		send    func(context.Context, *leaseBench) error
		sent    bool
		reason  string
	}{
		"while it connects": {
			prepare: func(b *leaseBench) { b.onDial = b.stop },
			send: func(ctx context.Context, b *leaseBench) error {
				return b.send(ctx, http.MethodPatch, path, strings.NewReader("{}"))
			},
			reason: "a connection may take as long as the API server is out of reach",
		},
		"before the first byte": {
			prepare: func(b *leaseBench) { b.onConnection = b.stop },
			send:    func(ctx context.Context, b *leaseBench) error { return b.send(ctx, http.MethodDelete, path, nil) },
			reason:  "a request waits for its turn on a connection",
		},
		"in the middle of the body": {
			prepare: func(*leaseBench) {},
			send: func(ctx context.Context, b *leaseBench) error {
				return b.send(ctx, http.MethodPost, path, &stoppingBody{stop: b.stop})
			},
			reason: "a server stores nothing of a body that has no end",
		},
		"while it reads": {
			prepare: func(b *leaseBench) { b.onConnection = b.stop },
			send:    func(ctx context.Context, b *leaseBench) error { return b.send(ctx, http.MethodGet, path, nil) },
			sent:    true,
			reason:  "reads store nothing",
		},
		"while it renews": {
			prepare: func(b *leaseBench) { b.onConnection = b.stop },
			send: func(ctx context.Context, b *leaseBench) error {
				return b.send(withRenewal(ctx, b.clock()), http.MethodPut, leasesPath+"/operetta.dev", strings.NewReader("{}"))
			},
			sent:   true,
			reason: "a Lease has a version, which refuses what comes too late",
		},
		"not at all": {
			prepare: func(*leaseBench) {},
			send: func(ctx context.Context, b *leaseBench) error {
				return b.send(ctx, http.MethodPatch, path, strings.NewReader("{}"))
			},
			sent:   true,
			reason: "who leads writes",
		},
	}
	for protocol, start := range leaseProtocols {
		for name, row := range rows {
			t.Run(protocol+": "+name, func(t *testing.T) {
				t.Parallel()
				b := newLeaseBench(t, start)
				b.lease.note(b.clock())
				row.prepare(b)
				err := row.send(t.Context(), b)
				if sent := b.count() > 0; sent != row.sent || sent != (err == nil) {
					t.Errorf("%s: it was sent: %v (%v), want %v", row.reason, sent, err, row.sent)
				}
				var expired *LeaseExpiredError
				if !row.sent && !errors.As(err, &expired) {
					t.Errorf("the error does not say why nothing was sent: %v", err)
				}
				if err := b.send(t.Context(), http.MethodGet, "/readyz", nil); err != nil {
					t.Errorf("a read after it: %v", err)
				}
			})
		}
	}
}

// TestAWriteOnAConnectionThatIsUsedAlreadyIsHeldBackToo also takes the Lease again after that, as a process may that was refused by the
// number of shards.
func TestAWriteOnAConnectionThatIsUsedAlreadyIsHeldBackToo(t *testing.T) {
	t.Parallel()
	for protocol, start := range leaseProtocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			b := newLeaseBench(t, start)
			write := func() error {
				return b.send(t.Context(), http.MethodPatch, "/api/v1/namespaces/a/configmaps/x", strings.NewReader("{}"))
			}
			b.lease.note(b.clock())
			if err := write(); err != nil {
				t.Fatal(err)
			}
			b.onConnection = b.stop
			if err := write(); err == nil {
				t.Error("it was sent after the Lease had expired")
			}
			b.onConnection = func() {}
			b.lease.note(b.clock())
			if err := write(); err != nil {
				t.Errorf("who has the Lease again cannot write: %v", err)
			}
			b.onConnection = b.lease.giveBack
			if err := write(); err == nil {
				t.Error("it was sent after the Lease was given back")
			}
			if n := b.count(); n != 2 {
				t.Errorf("%d requests arrived, want 2", n)
			}
		})
	}
}
