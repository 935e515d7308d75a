package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
)

// A tenant is whose reconciles are counted together: the resources of a namespace, or one resource of a cluster-scoped
// kind, as all of such a kind would be one.
type tenant types.NamespacedName

// tenantOf returns the tenant of a resource.
func tenantOf(req ctrl.Request) tenant {
	if req.Namespace != "" {
		return tenant{Namespace: req.Namespace}
	}
	return tenant{Name: req.Name}
}

// longReconciles says which tenants have a long reconcile, or had one lately, whatever it waits for: an admission webhook
// that does not answer takes as long as an evaluation that does not end, and resources that were quick until then run into it.
type longReconciles struct {
	// running is how many long reconciles of each tenant have not ended.
	running map[tenant]int
	// ended is when the last one of each tenant ended; it is zero for those that had none. It forgets those that were
	// reconciled least recently.
	ended *lru.Cache
}

func newLongReconciles() longReconciles {
	return longReconciles{map[tenant]int{}, lru.New(maxTracked)}
}

// begin notes that a reconcile of a tenant has become long.
func (l longReconciles) begin(t tenant) { l.running[t]++ }

// end notes that a long reconcile of a tenant has ended.
func (l longReconciles) end(t tenant) {
	if l.running[t]--; l.running[t] == 0 {
		delete(l.running, t)
	}
	l.ended.Add(t, time.Now())
}

// see notes that a tenant has resources.
func (l longReconciles) see(t tenant) {
	if _, known := l.ended.Get(t); !known {
		l.ended.Add(t, time.Time{})
	}
}

// has reports whether a tenant has a long reconcile, or had one lately.
func (l longReconciles) has(t tenant) bool {
	v, _ := l.ended.Get(t)
	at, _ := v.(time.Time)
	return l.running[t] > 0 || !at.IsZero() && time.Since(at) < longRemembered
}

// workers limits how many reconciles run at once that are not long. Each worker takes a place before it asks for a request, and
// leaves it when the reconcile ends or has taken long; then it holds nobody up.
type workers struct{ places chan struct{} }

func newWorkers(n int) workers { return workers{make(chan struct{}, max(1, n))} }

func (w workers) take()  { w.places <- struct{}{} }
func (w workers) leave() { <-w.places }

// longShare is how many times as many reconciles may be long at once as may run that are not.
const longShare = 2

// concurrent is how many reconciles may run at once, long ones included.
func (w workers) concurrent() int { return cap(w.places) * (1 + longShare) }

// namespaceWorkers is how many reconciles of a tenant run at once that had a long one lately: half as many as there are workers. While
// it is the only tenant, it has all of them: where the API server is slow, it is slow for everybody.
func (q *fairQueue) namespaceWorkers() int {
	if q.long.ended.Len() <= 1 {
		return cap(q.workers.places)
	}
	return max(1, cap(q.workers.places)/2)
}

// allowsLong reports whether one more reconcile may run of a tenant that had a long one lately. All such tenants together
// leave as many reconciles to others as there are workers.
func (q *fairQueue) allowsLong(u workerUse, t tenant) bool {
	return u.of[t] < q.namespaceWorkers() && u.long < longShare*cap(q.workers.places)
}

// allowsOneMore reports whether one more reconcile may run of a tenant of which none was long lately. Once as many are long as there are
// workers, others may begin to hang, too: each has one then, which shows it, and does not take all workers.
func (q *fairQueue) allowsOneMore(u workerUse, t tenant) bool {
	return u.long < cap(q.workers.places) || u.of[t] == 0
}

// watchDuration lets others have the worker of a reconcile that begins once it is long.
func (q *fairQueue) watchDuration(req ctrl.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.assigned[req]
	q.long.see(tenantOf(req))
	a.timer = time.AfterFunc(longReconcile, func() {
		if q.noteLong(req, a) {
			q.workers.leave()
			q.assignParked()
		}
	})
}

// noteLong notes that a reconcile is long. It reports false if it has just ended.
func (q *fairQueue) noteLong(req ctrl.Request, a *assignment) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.assigned[req] != a {
		return false
	}
	a.long = true
	q.long.begin(tenantOf(req))
	return true
}

// endAssignment notes that a request has no worker any more. It reports whether it still had one: a long
// reconcile has left it before.
func (q *fairQueue) endAssignment(req ctrl.Request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.assigned[req]
	delete(q.assigned, req)
	if a == nil || a.timer == nil {
		return false
	}
	a.timer.Stop()
	if a.long {
		q.long.end(tenantOf(req))
	}
	return !a.long
}
