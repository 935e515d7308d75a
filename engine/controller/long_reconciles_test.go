package controller

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// TestAnAPIServerThatHangsForANamespaceHoldsUpNoOther: twenty resources were quick until an admission webhook of their
// namespace did not answer any more. No evaluation takes long.
func TestAnAPIServerThatHangsForANamespaceHoldsUpNoOther(t *testing.T) {
	inWorkshop(t, func(w *workshop) {
		w.wake("bob", "known", 5)
		w.wake("erin", "later", 20)
		<-time.After(time.Second)
		w.expect("all are quick", "later", 20)
		for i := range 20 {
			w.again("erin", fmt.Sprintf("later-%d", i)) // from now on, the webhook hangs
		}
		<-time.After(longReconcile + time.Millisecond)
		w.expect("her resources have all workers until that is long", "later", 20+4)
		w.wake("bob", "new", 20)
		w.wake("bob", "known", 5)
		w.expect("who did nothing is served at once", "new", 20)
		w.expect("also after a change", "known", 10)
		w.wake("erin", "fresh", 1)
		w.expect("a new resource of hers waits with her others", "fresh", 0)
		<-time.After(hangs + time.Millisecond - longReconcile)
		w.expect("she has a share of the workers, half of them", "later", 20+4+2)
		<-time.After(10 * hangs)
		w.expect("and each of hers has its turn", "later", 40)
		w.expect("the new one, too", "fresh", 1)
	})
}

func TestANamespaceThatIsQuickAgainHasAllWorkers(t *testing.T) {
	inWorkshop(t, func(w *workshop) {
		w.wake("bob", "known", 1)
		w.wake("erin", "later", 20)
		w.expect("all are quick", "later", 20)
		w.again("erin", "later-0")
		<-time.After(hangs)
		w.again("erin", "hang-0")
		w.again("erin", "hang-1")
		w.again("erin", "hang-2")
		w.expect("she has two workers", "hang", 2)
		close(w.release)
		w.expect("which are free again", "hang", 3)
		w.release = make(chan struct{})
		<-time.After(longRemembered)
		for i := range 4 {
			w.again("erin", fmt.Sprintf("later-%d", i+1))
		}
		w.expect("a minute later she has four", "later", 20+1+4)
	})
}

// TestAnAPIServerThatIsSlowForAllStarvesNobody: every reconcile is long.
func TestAnAPIServerThatIsSlowForAllStarvesNobody(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason     string
		namespaces int
		// want is how many reconciles are made at least while 20 of them take place one after the other.
		want int
	}{
		"one namespace":   {"there is nobody to leave workers to, and one is for what is known to be quick", 1, 3 * 20},
		"two namespaces":  {"each has half", 2, 4 * 20},
		"many namespaces": {"long ones hold up no others, so there are more than four", 30, 4 * 20},
	} {
		t.Run(name, func(t *testing.T) {
			inWorkshop(t, func(w *workshop) {
				for i := range row.namespaces {
					w.wake(fmt.Sprint("tenant-", i), fmt.Sprintf("always-%d", i), 600/row.namespaces)
				}
				<-time.After(20*hangs + time.Second)
				if got := w.took("always"); got < row.want {
					t.Errorf("%s: %d reconciles were made, want %d", row.reason, got, row.want)
				}
				for i := range row.namespaces {
					if w.took(fmt.Sprintf("always-%d-", i)) == 0 {
						t.Errorf("%s: namespace %d has had none", row.reason, i)
					}
				}
				if n, most := w.runningNow(), w.fair.workers.concurrent(); n > most {
					t.Errorf("%d reconciles run at once, more than %d", n, most)
				}
			})
		})
	}
}

// TestNamespacesThatHangTogetherLeaveWorkersToOthers: twelve of them do, and had a resource that hung a moment ago.
func TestNamespacesThatHangTogetherLeaveWorkersToOthers(t *testing.T) {
	inWorkshop(t, func(w *workshop) {
		w.wake("bob", "known", 1)
		for i := range 12 {
			w.wake(fmt.Sprint("tenant-", i), fmt.Sprintf("always-%d", i), 1)
		}
		<-time.After(2 * hangs)
		w.expect("all have had their turn", "always", 12)
		for i := range 12 {
			w.again(fmt.Sprint("tenant-", i), fmt.Sprintf("always-%d-0", i))
		}
		<-time.After(4 * longReconcile)
		w.wake("bob", "new", 20)
		w.expect("who did nothing is served at once", "new", 20)
		if n := w.runningNow(); n > longShare*4 {
			w.t.Errorf("%d of those that hang have workers, want at most %d", n, longShare*4)
		}
	})
}

// TestNamespacesThatBeginToHangTogetherLeaveWorkersToOthers: nobody knows of any of six namespaces, with 20 resources each, that they
// hang. Another one was served only when the webhooks had timed out.
func TestNamespacesThatBeginToHangTogetherLeaveWorkersToOthers(t *testing.T) {
	inWorkshop(t, func(w *workshop) {
		for i := range 6 {
			w.wake(fmt.Sprint("tenant-", i), fmt.Sprintf("always-%d", i), 20)
		}
		<-time.After(4 * longReconcile)
		w.wake("bob", "new", 20)
		<-time.After(longReconcile)
		w.expect("who did nothing is served", "new", 20)
		<-time.After(10 * hangs)
		for i := range 6 {
			if w.took(fmt.Sprintf("always-%d-", i)) == 0 {
				w.t.Errorf("namespace %d has had no turn", i)
			}
		}
	})
}

// TestAClusterScopedResourceThatHangsHoldsUpNoOther: all of a cluster-scoped kind are in no namespace.
func TestAClusterScopedResourceThatHangsHoldsUpNoOther(t *testing.T) {
	inWorkshop(t, func(w *workshop) {
		w.wake("", "hang", 3)
		<-time.After(longReconcile)
		w.wake("", "new", 20)
		w.expect("the others are served", "new", 20)
	})
}

func TestLongReconcilesForgetTenants(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLongReconciles()
		for i := range 2 * maxTracked {
			of := tenantOf(ctrl.Request{NamespacedName: request(fmt.Sprint(i)).NamespacedName})
			of.Name = fmt.Sprint(i)
			l.see(of)
			l.begin(of)
			l.end(of)
		}
		if len(l.running) > 0 || l.ended.Len() > maxTracked {
			t.Errorf("%d that run and %d tenants are remembered, want none and at most %d", len(l.running), l.ended.Len(), maxTracked)
		}
	})
}
