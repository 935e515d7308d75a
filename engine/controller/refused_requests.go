package controller

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	ctrl "sigs.k8s.io/controller-runtime"
)

// refusedRequests are the permissions that a reconcile lacked. A resource that lacks one is retried with
// a growing delay, as after any error, which takes minutes in the end. So the API server is asked in an
// interval whether the permission is there now, once for all resources that lack it, and they are
// reconciled when it is.
//
// A denial by an admission webhook or policy is a refusal, too. The operator has the permission then, so
// such a refusal is only asked about once in a while, and has no further consequence.
type refusedRequests struct {
	// allowed asks the API server whether the operator has a permission.
	allowed func(context.Context, permission) (bool, error)
	now     func() time.Time
	// signal is called for each refused request of a user, with the permissions of which it has lacked one.
	signal func(object.Account, []permission)
	// noted signals a permission that has not been asked about.
	noted chan struct{}

	mu sync.Mutex
	by map[permission]*refusal
}

// A permission is a verb on a resource in a namespace, or in all for "", and on the object of a name, or on
// all for "".
type permission struct {
	verb, group, resource, subresource, namespace, name string
	// as is who lacks it.
	as object.Account
}

// of returns the permission for an object.
func (p permission) of(name string) permission {
	p.name = name
	return p
}

// everywhere returns the permission in all namespaces.
func (p permission) everywhere() permission {
	p.namespace, p.name = "", ""
	return p
}

// A refusal is what is known of a permission that a request lacked.
type refusal struct {
	// next is when to ask again. granted says that the operator had the permission when it was asked about
	// first: admission has denied the request.
	next    time.Time
	asked   bool
	granted bool
	// rounds is how often it was asked about.
	rounds  int
	waiting map[waiterKey]*waiting
}

// waiting is a resource that waits for a permission.
type waiting struct {
	enqueue func()
	// name is the object of the request that was refused: a role may allow it by its name.
	name string
	// noted is when a request was refused last, and asked when it was asked about by name.
	noted, asked time.Time
}

// A waiterKey is a resource that waits, by its controller.
type waiterKey struct {
	controller string
	ctrl.Request
}

// A waiter is the resource that is being reconciled, in the context of its requests.
type waiter struct {
	waiterKey

	enqueue func()
}

type waiterContextKey struct{}

// withWaiter returns the context of a reconcile, whose refused requests are noted for the resource.
func withWaiter(ctx context.Context, w waiter) context.Context {
	return context.WithValue(ctx, waiterContextKey{}, w)
}

func newRefusedRequests() *refusedRequests {
	return &refusedRequests{now: time.Now, signal: func(object.Account, []permission) {}, noted: make(chan struct{}, 1), by: map[permission]*refusal{}}
}

// ask asks the API server by a SelfSubjectAccessReview, which every user may create, whether a permission is there. It
// errors with Forbidden if the process may not act as who would have it.
func (m *Manager) ask(ctx context.Context, p permission) (bool, error) {
	by, done, err := m.identityOf(p.as)
	if err != nil {
		return false, err
	}
	defer done()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: p.verb, Group: p.group, Resource: p.resource, Subresource: p.subresource, Namespace: p.namespace, Name: p.name,
		},
	}}
	err = by.caches.Direct.Create(ctx, review)
	return review.Status.Allowed, err
}

// note notes the permissions of which a request has lacked one.
func (r *refusedRequests) note(lacked []permission, w waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for _, p := range lacked {
		name := p.name
		p = p.of("")
		known := r.by[p]
		switch {
		case known != nil && known.granted && now.Before(known.next):
			continue
		case known != nil && !known.granted:
			known.wait(w, name, now)
			continue
		case known == nil && !r.room(w.Namespace):
			continue // its resources are retried all the same
		}
		r.by[p] = &refusal{next: now, waiting: map[waiterKey]*waiting{}}
		r.by[p].wait(w, name, now)
		wake(r.noted)
	}
}

// wait notes that a resource waits.
func (f *refusal) wait(w waiter, name string, now time.Time) {
	if f.waiting[w.waiterKey] == nil {
		f.waiting[w.waiterKey] = &waiting{}
	}
	one := f.waiting[w.waiterKey]
	one.enqueue, one.name, one.noted = w.enqueue, name, now
}

// waitsIn reports whether a resource of a namespace waits.
func (f *refusal) waitsIn(namespace string) bool {
	for key := range f.waiting {
		if key.Namespace == namespace {
			return true
		}
	}
	return false
}

// room reports whether one more permission may be noted for a resource of a namespace.
func (r *refusedRequests) room(namespace string) bool {
	ofIt := 0
	for _, known := range r.by {
		if known.waitsIn(namespace) {
			ofIt++
		}
	}
	return len(r.by) < maxRefusals && ofIt < maxRefusalsOfOne
}

// maxRefusals bounds how many permissions are asked about, and maxRefusalsOfOne how many for the resources of
// one namespace: a forged status may name many namespaces. refusalsAtOnce bounds how many of them in one
// interval.
const (
	maxRefusals      = 200
	maxRefusalsOfOne = 40
	refusalsAtOnce   = 20
)

// askByNameEvery is how many rounds there are for each in which a permission is asked about by the name of an object.
const askByNameEvery = 2

// Start implements manager.Runnable.
func (r *refusedRequests) Start(ctx context.Context) error {
	for tick := time.Tick(refusedInterval); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
		case <-r.noted:
		}
		r.askDue(ctx)
	}
}

// askDue asks about the permissions that are due, the longest first, and enqueues what waits for those
// that are there. If several namespaces lack one, it is asked about in all namespaces first.
func (r *refusedRequests) askDue(ctx context.Context) {
	due := r.due()
	for p, all := range r.widespread(due) {
		if allowed, err := r.allowed(ctx, p); !allowed || err != nil {
			continue
		}
		for _, one := range all {
			run(r.answered(one, true))
		}
	}
	for _, p := range due {
		if ctx.Err() != nil {
			return
		}
		if !r.isDue(p) {
			continue // it was answered for all namespaces
		}
		allowed, err := r.allowed(ctx, p)
		run(r.answered(p, allowed && err == nil))
		if allowed || err != nil {
			continue
		}
		if name := r.nameToAsk(p); name != "" {
			allowed, err = r.allowed(ctx, p.of(name))
			run(r.answeredFor(p, name, allowed && err == nil))
		}
	}
}

func run(all []func()) {
	for _, f := range all {
		f()
	}
}

// due returns the permissions to ask about now. It forgets those that were there long ago, and those for
// which nothing waits any more: what waits is retried, and refused again, at least every few minutes.
func (r *refusedRequests) due() []permission {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	var out []permission
	for p, known := range r.by {
		maps.DeleteFunc(known.waiting, func(_ waiterKey, w *waiting) bool { return now.Sub(w.noted) > forgetRefusal })
		switch {
		case !known.granted && len(known.waiting) == 0:
			delete(r.by, p)
		case now.Before(known.next):
		case known.granted:
			delete(r.by, p)
		default:
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b permission) int { return r.by[a].next.Compare(r.by[b].next) })
	return out[:min(len(out), refusalsAtOnce)]
}

// isDue reports whether a permission was not answered since it became due.
func (r *refusedRequests) isDue(p permission) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.by[p]
	return known != nil && !known.granted && !r.now().Before(known.next)
}

// widespread returns the permissions in all namespaces that stand for several, of which one is due.
func (r *refusedRequests) widespread(due []permission) map[permission][]permission {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[permission][]permission{}
	for _, p := range due {
		out[p.everywhere()] = nil
	}
	for p, known := range r.by {
		if all, is := out[p.everywhere()]; is && !known.granted {
			out[p.everywhere()] = append(all, p)
		}
	}
	maps.DeleteFunc(out, func(_ permission, all []permission) bool { return len(all) < 2 })
	return out
}

// answered records an answer, and returns what to enqueue.
func (r *refusedRequests) answered(p permission, allowed bool) []func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.by[p]
	if known == nil {
		return nil
	}
	first := !known.asked
	known.asked, known.next = true, r.now().Add(refusedInterval-refusedInterval/10) // the tick comes a little early, too
	known.rounds++
	switch {
	case !allowed:
		return nil
	case first:
		r.deniedByAdmission(known)
		return nil
	}
	delete(r.by, p)
	var out []func()
	for _, w := range known.waiting {
		out = append(out, w.enqueue)
	}
	return out
}

// deniedByAdmission notes that the operator has a permission although a request was refused.
func (r *refusedRequests) deniedByAdmission(known *refusal) {
	known.granted, known.waiting, known.next = true, nil, r.now().Add(deniedInterval)
}

// nameToAsk returns the name of the object by which a permission is to be asked about in this round, or "":
// that of the resource for which it was asked about the longest ago.
func (r *refusedRequests) nameToAsk(p permission) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.by[p]
	if known == nil || (known.rounds-1)%askByNameEvery != 0 {
		return ""
	}
	var next *waiting
	for _, w := range known.waiting {
		if w.name != "" && (next == nil || w.before(next)) {
			next = w
		}
	}
	if next == nil {
		return ""
	}
	return next.name
}

// before reports whether one resource is asked about before another one: it was asked about the longer ago, or refused,
// or its name is the first one.
func (w *waiting) before(other *waiting) bool {
	return cmp.Or(w.asked.Compare(other.asked), w.noted.Compare(other.noted), strings.Compare(w.name, other.name)) < 0
}

// answeredFor records an answer about the object of a name, and returns what to enqueue.
func (r *refusedRequests) answeredFor(p permission, name string, allowed bool) []func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.by[p]
	if known == nil {
		return nil
	}
	var out []func()
	for key, w := range known.waiting {
		if w.name != name {
			continue
		}
		first := w.asked.IsZero()
		w.asked = r.now()
		if !allowed {
			continue
		}
		delete(known.waiting, key)
		if !first {
			out = append(out, w.enqueue)
		}
	}
	switch {
	case len(known.waiting) > 0:
	case len(out) > 0:
		delete(r.by, p)
	default:
		r.deniedByAdmission(known)
	}
	return out
}

// wrap returns a configuration whose clients note the requests of reconciles that are refused to a user.
func (r *refusedRequests) wrap(config *rest.Config, as object.Account) *rest.Config {
	out := rest.CopyConfig(config)
	out.Wrap(func(rt http.RoundTripper) http.RoundTripper { return refusalTransport{rt, r, as} })
	return out
}

// A refusalTransport notes refused requests.
type refusalTransport struct {
	http.RoundTripper

	refused *refusedRequests
	as      object.Account
}

// RoundTrip implements http.RoundTripper.
func (t refusalTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	out, err := t.RoundTripper.RoundTrip(req)
	if err != nil || out.StatusCode != http.StatusForbidden {
		return out, err
	}
	lacked := permissionsFor(req, t.as)
	t.refused.signal(t.as, lacked)
	if w, ok := req.Context().Value(waiterContextKey{}).(waiter); ok && !cluster.MayBeRefused(req.Context()) {
		t.refused.note(lacked, w)
	}
	return out, nil
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (t refusalTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// permissionsFor returns the permissions that a request may lack. Server-side apply lacks patch, or create
// if the object does not exist.
func permissionsFor(req *http.Request, as object.Account) []permission {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	at := slices.IndexFunc(parts, func(part string) bool { return part == "api" || part == "apis" })
	if at < 0 {
		return nil
	}
	p := permission{as: as}
	switch rest := parts[at+1:]; {
	case parts[at] == "api" && len(rest) > 1:
		parts = rest[1:]
	case parts[at] == "apis" && len(rest) > 2:
		p.group, parts = rest[0], rest[2:]
	default:
		return nil
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		p.namespace, parts = parts[1], parts[2:]
	}
	p.resource = parts[0]
	if len(parts) > 1 {
		p.name = parts[1]
	}
	if len(parts) > 2 {
		p.subresource = parts[2]
	}
	var out []permission
	for _, verb := range verbsOf(req.Method, len(parts) > 1) {
		p.verb = verb
		out = append(out, p)
	}
	return out
}

// verbsOf returns the verbs that a request may be authorized for; named says that it names an object.
func verbsOf(method string, named bool) []string {
	switch method {
	case http.MethodGet:
		if named {
			return []string{"get"}
		}
		return []string{"list"}
	case http.MethodPost:
		return []string{"create"}
	case http.MethodPut:
		return []string{"update"}
	case http.MethodPatch:
		return []string{"patch", "create"}
	case http.MethodDelete:
		return []string{"delete"}
	}
	return nil
}
