package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
	"operetta.dev/test/machine"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

func TestAManagerRunsCUEInItsProcessOnlyIfItIsToldTo(t *testing.T) {
	t.Parallel()
	if _, err := New(away, Options{}); !errors.Is(err, errNoWorkers) {
		t.Errorf("without workers, CUE would run over users' data where nothing can end it: %v", err)
	}
}

// A lyingBackend is CUE that says something else of what a template evaluates.
type lyingBackend struct{ evaluate.Backend }

// Confirm implements evaluate.Backend.
func (b lyingBackend) Confirm(ctx context.Context, s program.Session, expected program.Rollout) (program.Rollout, bool, error) {
	r, _, err := b.Backend.Confirm(ctx, s, expected)
	r.Unstored = "something else"
	return r, false, err
}

// recordedEvents are the events that were recorded, with the names of their resources.
type recordedEvents struct {
	mu  sync.Mutex
	all []string
}

// Record implements reconcile.Recorder.
func (r *recordedEvents) Record(u *unstructured.Unstructured, e rollout.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, u.GetNamespace()+"/"+u.GetName()+" "+e.Reason)
}

// An electedManager leads.
type electedManager struct{ manager.Manager }

// Elected implements manager.Manager.
func (electedManager) Elected() <-chan struct{} {
	out := make(chan struct{})
	close(out)
	return out
}

// A resource may rest with what a template said of it before somebody found out that it was wrong.
func TestATemplateThatDiffersIsReportedAndEveryResourceReconciled(t *testing.T) {
	t.Parallel()
	p := load(t, "differing", "Differing")
	m, err := New(&rest.Config{Host: serverOf(t, p, "first", "second", "third")}, Options{InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	m.manager = electedManager{m.manager}
	if err := m.Serve(p); err != nil {
		t.Fatal(err)
	}
	c, err := m.controllerOf(p)
	if err != nil {
		t.Fatal(err)
	}
	events, queue := &recordedEvents{}, priorityqueue.New[ctrl.Request]("differing")
	c.as.recorder = events
	defer queue.ShutDown()
	if err := c.enqueuer.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.as.resources.Start(t.Context()) }()

	options := m.evaluateOptions(p)
	options.Backend, options.Templates = lyingBackend{evaluate.InProcess(p)}, evaluate.TemplatesChecked
	e := evaluate.New(p, options)
	before := differences(t, p.Name()) // the metrics are those of the process
	ctx, cancel := context.WithTimeout(t.Context(), machine.Patience)
	defer cancel()
	for i, row := range []struct {
		reason   string
		differ   float64
		events   []string
		enqueued []string
	}{
		{"CUE itself has evaluated it, and made a template", 0, nil, nil},
		{"a template says something else than CUE", 1, []string{"default/second TemplateDiffers"}, []string{"default/first", "default/second", "default/third"}},
	} {
		name := []string{"first", "second"}[i]
		if _, err := e.EvaluateContext(ctx, program.Session{CR: differing(p, name)}); err != nil {
			t.Fatal(err)
		}
		if got := differences(t, p.Name()) - before; got != row.differ {
			t.Errorf("%s: the metric has increased by %v, not by %v", row.reason, got, row.differ)
		}
		if diff := cmp.Diff(row.events, events.all); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", row.reason, diff)
		}
		if diff := cmp.Diff(row.enqueued, allOf(queue)); diff != "" {
			t.Errorf("%s: enqueued (-want +got):\n%s", row.reason, diff)
		}
	}
}

// allOf takes all requests that are in a queue, and returns them sorted. It waits for none.
func allOf(queue requestQueue) []string {
	var out []string
	for range queue.Len() {
		next, _ := queue.Get()
		out = append(out, next.String())
		queue.Done(next)
	}
	slices.Sort(out)
	return out
}

// differing returns a resource of a package.
func differing(p *program.Program, name string) map[string]any {
	apiVersion, kind := p.GroupVersionKind().ToAPIVersionAndKind()
	return map[string]any{
		"apiVersion": apiVersion, "kind": kind, "spec": map[string]any{},
		"metadata": map[string]any{"name": name, "namespace": "default", "uid": name, "resourceVersion": "1", "finalizers": []any{reconcile.Finalizer}},
	}
}

// serverOf serves resources of a package that never change.
func serverOf(t *testing.T, p *program.Program, names ...string) string {
	t.Helper()
	gvk := p.GroupVersionKind()
	plural := strings.ToLower(gvk.Kind) + "s"
	version := fmt.Sprintf(`{"groupVersion":%q,"version":%q}`, gvk.GroupVersion(), gvk.Version)
	items := unstructured.UnstructuredList{Object: map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind + "List", "metadata": map[string]any{"resourceVersion": "1"}}}
	for _, name := range names {
		items.Items = append(items.Items, unstructured.Unstructured{Object: differing(p, name)})
	}
	list, err := items.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{
		"/api":  `{"kind":"APIVersions","versions":[]}`,
		"/apis": fmt.Sprintf(`{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":%q,"versions":[%s],"preferredVersion":%s}]}`, gvk.Group, version, version),
		"/apis/" + gvk.GroupVersion().String(): fmt.Sprintf(
			`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":%q,"resources":[{"name":%q,"kind":%q,"namespaced":true,"verbs":["list","watch"]}]}`, gvk.GroupVersion(), plural, gvk.Kind,
		),
		"/apis/" + gvk.GroupVersion().String() + "/" + plural: string(list),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		if r.URL.Query().Get("sendInitialEvents") == "true" { // then it is asked for the list
			http.Error(w, "no", http.StatusUnprocessableEntity)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "true" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

// differences returns how many templates of a package have differed.
func differences(t *testing.T, name string) float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(evaluations)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			if f.GetName() == "operetta_template_differences_total" && metric.GetLabel()[0].GetValue() == name {
				return metric.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("package %s has no counter", name)
	return 0
}

var _ reconcile.Recorder = (*recordedEvents)(nil)
