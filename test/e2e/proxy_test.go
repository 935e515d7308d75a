package e2e

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"operetta.dev/test/harness"
)

// A faultKind is what happens at a write. The write has always reached the API server.
type faultKind string

const (
	// killed: the operator gets the response, and is killed.
	killed faultKind = "killed"
	// lost: the operator is killed before it gets a response.
	lost faultKind = "lost"
	// cut: the operator's connection is closed before it gets a response.
	cut faultKind = "cut"
)

// A fault is a faultKind at a numbered write. The zero fault is no fault.
type fault struct {
	write int
	kind  faultKind
}

// String returns the name of the subtest with the fault.
func (f fault) String() string { return fmt.Sprintf("k=%d/%s", f.write, f.kind) }

// proxy is between one operator and the API server. It passes writes on one after the other, so that
// their numbers are deterministic, and injects a fault at one of them. After that it passes on no write
// of a process that is killed.
type proxy struct {
	t       *testing.T
	forward *httputil.ReverseProxy
	// done is closed when the fault has happened.
	done chan struct{}

	mu sync.Mutex
	// victim is the operator that is killed.
	victim *harness.Operator
	fault  fault
	armed  bool
	dead   bool
	writes []string
}

// behindProxy makes operators that the test starts later reach the API server through a proxy.
func (s *env) behindProxy() *proxy {
	s.T.Helper()
	p := &proxy{t: s.T, done: make(chan struct{})}
	p.forward = s.through(p)
	return p
}

// through makes operators that the test starts later reach the API server through a handler. It returns what that passes requests on to.
func (s *env) through(between http.Handler) *httputil.ReverseProxy {
	s.T.Helper()
	forward, kubeconfig := proxyTo(s.T, s.Kubeconfig, between)
	s.Kubeconfig = kubeconfig
	return forward
}

// proxyTo starts a server whose requests a handler gets. It returns what passes them on to the server of a kubeconfig, and a kubeconfig for it.
func proxyTo(t *testing.T, kubeconfig string, between http.Handler) (forward *httputil.ReverseProxy, path string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	forward = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // a watch is a response without an end
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	server := httptest.NewUnstartedServer(between)
	server.Config.ErrorLog = forward.ErrorLog
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	path = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(kubeconfigOf(server), path); err != nil {
		t.Fatal(err)
	}
	return forward, path
}

// kubeconfigOf returns a kubeconfig for a server that does not authenticate.
func kubeconfigOf(server *httptest.Server) clientcmdapi.Config {
	const name = "proxy"
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: ca}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name}
	out.CurrentContext = name
	return *out
}

// injectFault starts to count the writes of an operator, and injects a fault at one of them.
func (p *proxy) injectFault(victim *harness.Operator, f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.victim, p.fault, p.armed, p.writes = victim, f, true, nil
}

// counted returns the writes since injectFault.
func (p *proxy) counted() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writes
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !isWrite(r) {
		p.forward.ServeHTTP(w, r)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		panic(http.ErrAbortHandler)
	}
	answer := httptest.NewRecorder()
	p.forward.ServeHTTP(answer, r)
	if p.armed {
		p.writes = append(p.writes, r.Method+" "+r.URL.Path)
	}
	if !p.armed || len(p.writes) != p.fault.write {
		p.waitForEnd(r)
		deliver(w, answer)
		return
	}
	defer close(p.done)
	switch p.fault.kind {
	case killed:
		deliver(w, answer)
		p.kill()
	case lost:
		p.kill()
		panic(http.ErrAbortHandler)
	case cut:
		panic(http.ErrAbortHandler)
	}
}

// waitForEnd waits until the objects that a request has deleted are gone. Garbage collection takes some
// time for a foreground deletion, and events of it would make the number of the operator's writes
// differ between runs. It does not wait for a custom resource of another package, which is only gone
// after later writes of the operator.
func (p *proxy) waitForEnd(r *http.Request) {
	if r.Method != http.MethodDelete || strings.Contains(r.URL.Path, ".example.com/") || strings.Contains(r.URL.Path, "/example.com/") {
		return
	}
	look := r.Clone(r.Context())
	look.Method, look.Body, look.ContentLength = http.MethodGet, http.NoBody, 0
	for began := time.Now(); time.Since(began) < harness.Timeout; {
		answer := httptest.NewRecorder()
		p.forward.ServeHTTP(answer, look)
		if answer.Code == http.StatusNotFound {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// kill kills the operator. Requests that it has sent before are not passed on.
func (p *proxy) kill() {
	p.dead = true
	p.victim.Kill()
}

// deliver sends a recorded response.
func deliver(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	maps.Copy(w.Header(), answer.Header())
	w.Header().Set("Content-Length", strconv.Itoa(answer.Body.Len()))
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // whoever asked may be gone
	_ = http.NewResponseController(w).Flush()
}

// isWrite reports whether a request is a write that counts: Events and leases are written at their own
// pace, and dry runs change nothing.
func isWrite(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return false
	}
	return !r.URL.Query().Has("dryRun") && !strings.Contains(r.URL.Path, "/events") && !strings.Contains(r.URL.Path, "/leases")
}

// waitForFault waits until the fault has happened.
func (p *proxy) waitForFault() {
	p.t.Helper()
	harness.Eventually(p.t, "write "+p.fault.String(), func() error {
		select {
		case <-p.done:
			return nil
		default:
			return fmt.Errorf("there were only %q", p.counted())
		}
	})
}
