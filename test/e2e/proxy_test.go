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

// harm is what becomes of a write that is harmed. Each has reached the API server.
type harm string

const (
	// killed: the response is delivered, and the operator dies.
	killed harm = "killed"
	// lost: the operator dies, and has seen no response.
	lost harm = "lost"
	// cut: the operator sees its connection end instead of a response.
	cut harm = "cut"
)

// A fault is what goes wrong at which write; the zero fault is nothing.
type fault struct {
	write int
	harm  harm
}

// String is the name by which a plan is run again.
func (f fault) String() string { return fmt.Sprintf("k=%d/%s", f.write, f.harm) }

// proxy stands between one operator and the API server. It passes writes on one after
// the other, so that the number of a write says which it is, and harms one of them.
// After that a process that was to die writes nothing any more.
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

// behindProxy makes the operators that the site starts from now on reach the API
// server through a proxy.
func (s *site) behindProxy() *proxy {
	s.T.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		s.T.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		s.T.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		s.T.Fatal(err)
	}
	p := &proxy{t: s.T, done: make(chan struct{})}
	p.forward = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // a watch is a response without an end
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	server := httptest.NewUnstartedServer(p)
	server.Config.ErrorLog = p.forward.ErrorLog
	server.StartTLS()
	s.T.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	s.Kubeconfig = filepath.Join(s.T.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(kubeconfigOf(server), s.Kubeconfig); err != nil {
		s.T.Fatal(err)
	}
	return p
}

// kubeconfigOf says how to reach a server, which asks nobody who they are.
func kubeconfigOf(server *httptest.Server) clientcmdapi.Config {
	const name = "proxy"
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: ca}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name}
	out.CurrentContext = name
	return *out
}

// arm begins to count the writes of an operator, and harms one of them.
func (p *proxy) arm(victim *harness.Operator, f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.victim, p.fault, p.armed, p.writes = victim, f, true, nil
}

// counted returns the writes since the proxy was armed.
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
		p.awaitEnd(r)
		deliver(w, answer)
		return
	}
	defer close(p.done)
	switch p.fault.harm {
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

// awaitEnd waits until what a request has deleted is gone. Garbage collection ends a
// foreground deletion sooner or later, and what the operator sees of it would make
// the number of its writes differ from run to run. A custom resource of another package
// is not waited for: it ends by writes of the operator, which come after this one.
func (p *proxy) awaitEnd(r *http.Request) {
	if r.Method != http.MethodDelete || strings.Contains(r.URL.Path, ".example.com/") || strings.Contains(r.URL.Path, "/example.com/") {
		return
	}
	look := r.Clone(r.Context())
	look.Method, look.Body, look.ContentLength = http.MethodGet, http.NoBody, 0
	for began := time.Now(); time.Since(began) < harness.Patience; {
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

// kill ends the operator. What it has sent before is not passed on.
func (p *proxy) kill() {
	p.dead = true
	p.victim.Kill()
}

// deliver sends an answer as a whole.
func deliver(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	maps.Copy(w.Header(), answer.Header())
	w.Header().Set("Content-Length", strconv.Itoa(answer.Body.Len()))
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // whoever asked may be gone
	_ = http.NewResponseController(w).Flush()
}

// isWrite reports whether a request changes what the engine works on. Events and
// leases are written at their own pace, and rehearsals change nothing.
func isWrite(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return false
	}
	return !r.URL.Query().Has("dryRun") && !strings.Contains(r.URL.Path, "/events") && !strings.Contains(r.URL.Path, "/leases")
}

// await waits until the fault has happened.
func (p *proxy) await() {
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
