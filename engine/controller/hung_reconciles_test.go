package controller

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// TestK49HealthFailsWhileAReconcileHangs plays how long each of some reconciles has gone on without an answer.
func TestK49HealthFailsWhileAReconcileHangs(t *testing.T) {
	t.Parallel()
	request := func(name string) ctrl.Request {
		return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}}
	}
	for name, row := range map[string]struct {
		limit     time.Duration
		since     []time.Duration
		end       int
		unhealthy bool
		reason    string
	}{
		"nothing runs":                   {limit: time.Minute, reason: "at rest the process is well"},
		"a reconcile that gets answers":  {limit: time.Minute, since: []time.Duration{time.Second, 59 * time.Second}, reason: "many writes take long, and each answer counts"},
		"a reconcile that hangs":         {limit: time.Minute, since: []time.Duration{time.Second, time.Hour}, unhealthy: true, reason: "one that hangs is enough"},
		"a reconcile that hung and ends": {limit: time.Minute, since: []time.Duration{time.Hour}, end: 1, reason: "it holds nothing up any more"},
		"no limit":                       {since: []time.Duration{time.Hour}, reason: "0 is forever"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRunningReconciles(row.limit)
			var all []*runningReconcile
			for _, since := range row.since {
				_, r := s.begin(t.Context(), "Shop", request(since.String()))
				r.answered.Store(int64(time.Since(epoch) - since))
				all = append(all, r)
			}
			for _, r := range all[:row.end] {
				s.end(r)
			}
			if err := s.check(nil); errors.Is(err, errHung) != row.unhealthy {
				t.Errorf("%s: health is %v", row.reason, err)
			}
			for _, r := range all[row.end:] {
				s.end(r)
			}
		})
	}
}
