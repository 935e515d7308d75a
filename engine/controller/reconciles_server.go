package controller

import (
	"encoding/json"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/controller/watch"
	"operetta.dev/engine/history"
	"operetta.dev/engine/ownership"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A reconcilesHandler serves what is known of the last reconciles of a resource to every user who may get that resource.
type reconcilesHandler struct {
	manager *Manager
	access  *access
}

func newReconcilesHandler(m *Manager) (http.Handler, error) {
	a, err := newAccess(m.manager.GetConfig(), func() client.Client { return m.own.caches.Direct })
	if err != nil {
		return nil, err
	}
	return reconcilesHandler{m, a}, nil
}

// The longest names in a question. Those of an API server are shorter.
const maxNameLength = 253

// ServeHTTP implements http.Handler.
func (h reconcilesHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet {
		http.Error(w, "this can only be read", http.StatusMethodNotAllowed)
		return
	}
	q := r.URL.Query()
	kind := schema.GroupKind{Group: q.Get("group"), Kind: q.Get("kind")}
	key := types.NamespacedName{Namespace: q.Get("namespace"), Name: q.Get("name")}
	if kind.Kind == "" || key.Name == "" || max(len(kind.Group), len(kind.Kind), len(key.Namespace), len(key.Name)) > maxNameLength {
		http.Error(w, "the parameters are group, kind, namespace and name", http.StatusBadRequest)
		return
	}
	// A user who may not see a resource does not learn whether it is served, or exists.
	if denied := h.access.deny(r, h.manager.asked(kind, key)); denied != nil {
		http.Error(w, denied.text, denied.code)
		return
	}
	report, missing := h.manager.reconciles(kind, key)
	if missing != nil {
		http.Error(w, missing.text, missing.code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(report) // who has gone away needs no answer
}

// asked returns what a user must be allowed to ask about a resource.
func (m *Manager) asked(kind schema.GroupKind, key types.NamespacedName) authorizationv1.ResourceAttributes {
	plural, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
	out := authorizationv1.ResourceAttributes{Verb: "get", Group: kind.Group, Resource: plural.Resource, Namespace: key.Namespace, Name: key.Name}
	if c := m.controller(kind); c != nil {
		out.Resource = c.program.Load().Meta().Plural
	}
	return out
}

// reconciles returns what is known of the last reconciles of a resource, or why nothing is.
func (m *Manager) reconciles(kind schema.GroupKind, key types.NamespacedName) (history.Report, *denial) {
	if !isClosed(m.manager.Elected()) {
		return history.Report{}, &denial{http.StatusServiceUnavailable, "this process stands by: the one that leads knows"}
	}
	c := m.controller(kind)
	if c == nil || !c.added.Load() {
		return history.Report{}, &denial{http.StatusNotFound, "this operator does not serve " + kind.String()}
	}
	u := c.resources.Get(key)
	if u == nil {
		return history.Report{}, &denial{http.StatusNotFound, "this operator has not seen the resource"}
	}
	if !m.options.Shard.Contains(u.GetUID()) {
		return history.Report{}, &denial{http.StatusNotFound, m.options.elsewhere(u.GetUID())}
	}
	out, known := c.history.Report(key, u.GetUID())
	if !known {
		out.Since = time.Now()
	}
	c.addWatches(&out, u)
	return out, nil
}

// addWatches adds the watches of a resource to a report.
func (c *packageController) addWatches(to *history.Report, u *unstructured.Unstructured) {
	kind, key := u.GroupVersionKind(), client.ObjectKeyFromObject(u)
	all := []history.Watch{{Of: history.Resource, APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: c.resources.WatchedIn(u.GetNamespace()), State: history.Watching}}
	all = append(all, c.objects.Watches(ctrl.Request{NamespacedName: key}, objectsOf(u))...)
	if w, ok := c.as.patches.WatchOf(c.patches, u.GetNamespace()); ok {
		all = append(all, w)
	}
	to.MoreWatches = max(0, len(all)-watch.MaxReported)
	to.Watches = all[:len(all)-to.MoreWatches]
}

// objectsOf returns the objects in the inventory of a resource. One that cannot be read has none.
func objectsOf(u *unstructured.Unstructured) []cluster.Ref {
	inventory, _ := ownership.InventoryOf(u)
	var out []cluster.Ref
	for _, e := range inventory.Entries() {
		out = append(out, e.Ref(u.GetNamespace()))
	}
	return out
}
