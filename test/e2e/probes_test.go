package e2e

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"

	"operetta.dev/test/harness"
)

// An unanswered handler passes requests on, and holds the writes of ConfigMaps while it is closed, without an answer.
type unanswered struct {
	forward *httputil.ReverseProxy

	mu     sync.Mutex
	closed chan struct{}
}

// close holds writes until the function is called that it returns.
func (u *unanswered) close() (open func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	closed := make(chan struct{})
	u.closed = closed
	return sync.OnceFunc(func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.closed = nil
		close(closed)
	})
}

// ServeHTTP implements http.Handler.
func (u *unanswered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	closed := u.closed
	u.mu.Unlock()
	if closed != nil && r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/configmaps") {
		select {
		case <-closed:
		case <-r.Context().Done():
			return
		}
	}
	u.forward.ServeHTTP(w, r)
}

// expectProbe waits until a probe has a status code.
func expectProbe(o *harness.Operator, probe string, code int) {
	o.T.Helper()
	harness.Eventually(o.T, fmt.Sprintf("/%s to be %d", probe, code), func() error {
		if got := o.Probe(probe); got != code {
			return fmt.Errorf("it is %d", got)
		}
		return nil
	})
}

// A write that is never answered makes the process unhealthy, so that it is started anew; it stays ready, and is healthy again once
// there is an answer.
func TestK49AProcessIsUnhealthyWhileAWriteIsNotAnswered(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	between := &unanswered{}
	between.forward = s.through(between)
	p := newTestPackage(t, "unanswered", keptBody)
	o := s.StartOperator(p.Dir, "--health-probe-bind-address", harness.AnyPort, "--reconcile-limit", "1s")
	s.ExpectResourceReady(s.Create(p.Thing(s.Env, "before", nil)))
	expectProbe(o, "healthz", http.StatusOK)
	open := between.close()
	defer open()
	hung := s.Create(p.Thing(s.Env, "hung", nil))
	expectProbe(o, "healthz", http.StatusInternalServerError)
	expectProbe(o, "readyz", http.StatusOK)
	open()
	expectProbe(o, "healthz", http.StatusOK)
	s.ExpectResourceReady(hung)
}

// A process is ready once it can answer webhooks, for which it needs a certificate.
func TestAProcessIsNotReadyWhileTheCertificateOfItsWebhooksIsMissing(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "uncertified", webhookBody)
	w := s.NewWebhooks(p.Dir)
	namespace, name := w.Secret()
	secret := harness.Object("v1", "Secret", namespace, name)
	s.Delete(secret)
	s.ExpectGone(secret)
	o := s.StartOperator(append([]string{p.Dir, "--health-probe-bind-address", harness.AnyPort}, w.Flags()...)...)
	s.ExpectResourceReady(s.Create(p.Thing(s.Env, "shop", nil)))
	if code := o.Probe("readyz"); code != http.StatusInternalServerError {
		t.Errorf("/readyz is %d without a certificate", code)
	}
	if code := o.Probe("healthz"); code != http.StatusOK {
		t.Errorf("/healthz is %d, and to start anew brings no certificate", code)
	}
	s.Create(secret)
	expectProbe(o, "readyz", http.StatusOK)
}
