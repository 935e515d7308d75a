package controller

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// Two operators that share a Lease by mistake look alike to whoever reads neither the Lease nor the log of the one that leads.
func TestAProcessThatStandsBySaysWhoseLeaseItWaitsFor(t *testing.T) {
	t.Parallel()
	store, _ := newServing(t)
	var log []string
	e := store.process("this", Shard{})
	e.log = funcr.New(func(_, args string) {
		log = append(log, args)
	}, funcr.Options{})
	lock := e.notedLock()
	probes := &healthz.Handler{Checks: map[string]healthz.Checker{"leader": lock.wait.check}}
	ask := func(path string) (int, string) {
		w := httptest.NewRecorder()
		probes.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://pod"+path, http.NoBody))
		return w.Code, w.Body.String()
	}
	began := metav1.NewTime(metav1.Now().Rfc3339Copy().UTC())
	held := func(holder string) {
		store.delete("op")
		store.mu.Lock()
		defer store.mu.Unlock()
		store.put(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "op"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: new(holder), AcquireTime: new(metav1.NewMicroTime(began.Time))}})
	}
	rows := []struct {
		reason, holder string
		standsBy       bool
		logged         int
	}{
		{"nobody has it, as after an orderly end", "", false, 0},
		{"another process has it", "shop-7d_x", true, 1},
		{"it still has: the log has said so", "shop-7d_x", true, 1},
		{"the next one has it", "shop-9f_y", true, 2},
		{"this process leads", "this", false, 2},
		{"it has lost the Lease to one that had it before", "shop-9f_y", true, 3},
	}
	for _, row := range rows {
		held(row.holder)
		if _, _, err := lock.Get(t.Context()); err != nil {
			t.Fatalf("%s: %v", row.reason, err)
		}
		if code, text := ask("/"); code != http.StatusOK {
			t.Errorf("%s: a process that stands by is ready, or no rolling update would end: %d %s", row.reason, code, text)
		}
		code, text := ask("/leader")
		want := row.holder + " has the Lease ns/op since " + began.Format("2006-01-02T15:04:05Z")
		if standsBy := code != http.StatusOK; standsBy != row.standsBy || row.standsBy && !strings.Contains(text, want) {
			t.Errorf("%s: /readyz/leader: %d %s", row.reason, code, text)
		}
		if len(log) != row.logged {
			t.Errorf("%s: logged %d lines: %v", row.reason, len(log), log)
		}
		if n := len(log); n > 0 && row.standsBy && !strings.Contains(log[n-1], `"lease"="ns/op" "holder"="`+row.holder+`" "since"="`+began.Format("2006-01-02T15:04:05Z")) {
			t.Errorf("%s: logged %s", row.reason, log[n-1])
		}
	}
}
