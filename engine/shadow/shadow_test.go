package shadow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var (
	siteKind   = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Site"}
	configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	noteKind   = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Note"}
	secretKind = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
)

// A plane is an API server in memory: one client reads whole objects, and another one follows their metadata.
type plane struct {
	t      *testing.T
	client client.Client
	// reading is what the shadow reads by.
	reading  client.Client
	metadata *metadatafake.FakeMetadataClient
	mapper   *meta.DefaultRESTMapper
	printed  *printed
	shadow   *Shadow
	counted  *counting
	ended    chan Summary
	cancel   context.CancelFunc
	// gets counts the objects that were read.
	gets atomic.Int64
}

// printed is what a shadow has said.
type printed struct {
	mu    sync.Mutex
	last  map[string]Resource
	said  map[string]int
	notes []string
	sums  []Summary
}

func (p *printed) Resource(r Resource) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[r.Name] = r
	p.said[r.Name]++
}

func (p *printed) Gone(_ schema.GroupKind, _, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, name)
}

func (p *printed) Summary(s Summary) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sums = append(p.sums, s)
}

func (p *printed) Note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, text)
}

// counting is a package that counts its evaluations.
type counting struct {
	reconcile.Package

	n      atomic.Int64
	absent atomic.Bool
}

func (c *counting) Evaluate(s program.Session) (program.Rollout, error) {
	c.n.Add(1)
	if c.absent.Load() {
		return program.Rollout{}, &program.UnavailableError{Err: errors.New("no worker")}
	}
	return c.Package.Evaluate(s)
}

// sized renders one ConfigMap.
const sized = `components: web: objects: c: #CM & {metadata: name: cr.metadata.name, data: {size: "\(cr.spec.size)"}}`

func newPlane(t *testing.T) *plane {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	p := &plane{t: t, mapper: meta.NewDefaultRESTMapper(nil), metadata: metadatafake.NewSimpleMetadataClient(scheme), printed: &printed{last: map[string]Resource{}, said: map[string]int{}}}
	for _, kind := range []schema.GroupVersionKind{siteKind, noteKind, configMaps, secretKind, patch.Kind} {
		p.mapper.Add(kind, meta.RESTScopeNamespace)
	}
	p.metadata.PrependWatchReactor("*", p.watch)
	objects := runtime.NewScheme()
	named := &unstructured.Unstructured{}
	named.SetGroupVersionKind(configMaps)
	p.client = fake.NewClientBuilder().WithScheme(objects).WithRESTMapper(p.mapper).
		WithIndex(named, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).Build()
	p.reading = interceptor.NewClient(p.client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
			p.gets.Add(1)
			return c.Get(ctx, key, into, o...)
		},
	})
	return p
}

// watch begins a watch with all that is there. The fake knows no resource versions, and would lose what has happened
// between a list and a watch.
func (p *plane) watch(action clienttesting.Action) (bool, watch.Interface, error) {
	const kept = 10_000
	from, err := p.metadata.Tracker().Watch(action.GetResource(), action.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	listed, err := p.metadata.Tracker().List(action.GetResource(), schema.GroupVersionKind{Group: "fake-metadata-client-group", Version: "v1"}, action.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	events := make(chan watch.Event, kept)
	for _, item := range listed.(*metav1.List).Items {
		events <- watch.Event{Type: watch.Added, Object: item.Object}
	}
	go func() {
		defer close(events)
		for e := range from.ResultChan() {
			events <- e
		}
	}()
	return true, proxied{from, events}, nil
}

// proxied is a watch with other events.
type proxied struct {
	watch.Interface

	events chan watch.Event
}

// ResultChan implements watch.Interface.
func (p proxied) ResultChan() <-chan watch.Event { return p.events }

// put creates or updates an object.
func (p *plane) put(u *unstructured.Unstructured) {
	p.t.Helper()
	u = u.DeepCopy()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	err := p.client.Get(p.t.Context(), client.ObjectKeyFromObject(u), live)
	exists := err == nil
	if u.SetResourceVersion(live.GetResourceVersion()); exists {
		err = p.client.Update(p.t.Context(), u)
	} else {
		err = p.client.Create(p.t.Context(), u)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	m := &metav1.PartialObjectMetadata{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, m); err != nil {
		p.t.Fatal(err)
	}
	if exists {
		err = p.metadata.Tracker().Update(p.resource(u), m, u.GetNamespace())
	} else {
		err = p.metadata.Tracker().Create(p.resource(u), m, u.GetNamespace())
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// remove deletes an object.
func (p *plane) remove(u *unstructured.Unstructured) {
	p.t.Helper()
	if err := p.client.Delete(p.t.Context(), u); err != nil {
		p.t.Fatal(err)
	}
	if err := p.metadata.Tracker().Delete(p.resource(u), u.GetNamespace(), u.GetName()); err != nil {
		p.t.Fatal(err)
	}
}

func (p *plane) resource(u *unstructured.Unstructured) schema.GroupVersionResource {
	p.t.Helper()
	mapping, err := p.mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
	if err != nil {
		p.t.Fatal(err)
	}
	return mapping.Resource
}

// version loads a package.
func (p *plane) version(body string) plan.Version {
	p.t.Helper()
	loaded := inline.Program(p.t, header+body)
	p.counted = &counting{Package: loaded}
	return plan.Version{Program: loaded, Evaluates: p.counted}
}

// start starts a shadow.
func (p *plane) start(body string, o Options) {
	p.t.Helper()
	o.Cluster = &cluster.Live{Client: p.reading, Direct: p.reading, Kinds: func() ([]schema.GroupVersionKind, error) {
		return []schema.GroupVersionKind{siteKind, noteKind, configMaps, secretKind, patch.Kind}, nil
	}}
	o.Metadata, o.Mapper, o.Printer = p.metadata, p.mapper, p.printed
	p.shadow = New(o)
	p.shadow.Serve(p.version(body))
	ctx, cancel := context.WithCancel(p.t.Context())
	p.cancel, p.ended = cancel, make(chan Summary, 1)
	go func() { p.ended <- p.shadow.Run(ctx) }()
	p.t.Cleanup(cancel)
}

// eventually waits until what a shadow has said is as a check wants it.
func (p *plane) eventually(what string, check func(*printed) bool) {
	p.t.Helper()
	machine.Eventually(p.t, what, func() bool {
		p.printed.mu.Lock()
		defer p.printed.mu.Unlock()
		return check(p.printed)
	})
}

// hasState waits until a resource has a state.
func (p *plane) hasState(name string, want State) {
	p.t.Helper()
	p.eventually(name+" to be "+string(want), func(q *printed) bool { return q.last[name].State == want })
}

// aSite is a resource, and its ConfigMap as another operator has made it.
func aSite(t *testing.T, name string, size int) (site, config *unstructured.Unstructured) {
	t.Helper()
	site = inline.Object(t, fmt.Sprintf(`{apiVersion: example.com/v1, kind: Site, metadata: {name: %s, namespace: default, uid: uid-%s, generation: 1}, spec: {size: %d}}`, name, name, size))
	config = inline.Object(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: default, uid: uid-of-config-%s, ownerReferences: [{apiVersion: example.com/v1, kind: Site, name: %s, uid: uid-%s}]}, data: {size: "%d"}}`, name, name, name, name, size))
	return site, config
}

func TestAShadowEndsOnceAllAreTheSame(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	site, config := aSite(t, "a", 1)
	p.put(site)
	p.start(sized, Options{UntilSame: true})
	p.hasState("a", Different)
	config.Object["data"] = map[string]any{"size": "2"}
	p.put(config)
	p.eventually("the field to differ", func(q *printed) bool { return q.last["a"].fields() == 1 })
	other := inline.Object(t, `{apiVersion: v1, kind: Secret, metadata: {name: extra, namespace: default, uid: x, labels: {belongs-to: uid-a}}}`)
	p.put(other) // nobody watches Secrets: they are listed before the shadow ends
	config.Object["data"] = map[string]any{"size": "1"}
	p.put(config)
	p.eventually("the Secret to be found", func(q *printed) bool { return q.last["a"].with(Unrendered) == 1 })
	select {
	case s := <-p.ended:
		t.Fatalf("it has ended with %s", s)
	default:
	}
	p.remove(other) // its kind is watched from now on
	if s := <-p.ended; !s.IsDone() || s.All != 1 {
		t.Errorf("it has ended with %s", s)
	}
}

func TestAShadowOfNothingDoesNotEnd(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(sized, Options{UntilSame: true})
	<-p.shadow.ready
	p.shadow.printSummary()
	select {
	case s := <-p.ended:
		t.Fatalf("nothing was compared, and it has ended with %s", s)
	default:
	}
	site, config := aSite(t, "a", 1)
	p.put(config)
	p.put(site)
	if s := <-p.ended; !s.IsDone() {
		t.Errorf("it has ended with %s", s)
	}
}

func TestAnotherVersionComparesEverythingAnew(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	for _, name := range []string{"a", "b"} {
		site, config := aSite(t, name, 1)
		p.put(site)
		p.put(config)
	}
	p.start(sized, Options{Concurrency: 2})
	p.hasState("a", Same)
	p.hasState("b", Same)
	p.shadow.Serve(p.version(strings.Replace(sized, `size: "\(`, `size: "more than \(`, 1)))
	p.hasState("a", Different)
	p.hasState("b", Different)
	p.shadow.Outdated(siteKind.GroupKind())
	if p.shadow.seesAll() {
		t.Error("a broken version is on the disk, and the shadow would end")
	}
	p.shadow.Withdraw(siteKind.GroupKind())
	if s, _ := p.shadow.count(); s.All != 0 {
		t.Errorf("nobody serves the kind, and there are %s", s)
	}
}

func TestWhoeverIsDeletedIsGone(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	site, config := aSite(t, "a", 1)
	p.put(site)
	p.put(config)
	p.start(sized, Options{})
	p.hasState("a", Same)
	p.remove(config)
	p.hasState("a", Different)
	p.remove(site)
	p.eventually("a to be gone", func(q *printed) bool { _, there := q.last["a"]; return !there })
	if s, _ := p.shadow.count(); s.All != 0 {
		t.Errorf("there are %s", s)
	}
}

func TestAKindThatMayNotBeListedIsNamedAndTriedAgain(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	var allowed atomic.Bool
	p.metadata.PrependReactor("list", "sites", func(clienttesting.Action) (bool, runtime.Object, error) {
		return !allowed.Load(), nil, apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "sites"}, "", errors.New("no"))
	})
	site, config := aSite(t, "a", 1)
	p.put(site)
	p.put(config)
	p.start(sized, Options{UntilSame: true})
	p.eventually("the permission to be named", func(q *printed) bool {
		return slices.ContainsFunc(q.notes, func(n string) bool {
			return strings.Contains(n, "no Site is compared") && strings.Contains(n, "the permission is missing to list sites.example.com")
		})
	})
	allowed.Store(true)
	if s := <-p.ended; !s.IsDone() {
		t.Errorf("it has ended with %s", s)
	}
}

func TestNobodyToEvaluateIsNoDifference(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	site, config := aSite(t, "a", 1)
	p.put(site)
	p.put(config)
	p.start(sized, Options{})
	p.hasState("a", Same)
	p.counted.absent.Store(true)
	before := p.counted.n.Load()
	config.Object["data"] = map[string]any{"size": "2"}
	p.put(config)
	machine.Eventually(t, "another evaluation", func() bool { return p.counted.n.Load() > before })
	if s, busy := p.shadow.count(); s.Same != 1 || !busy {
		t.Errorf("what was said before holds until somebody evaluates: %s, %v", s, busy)
	}
}

func TestAnEventThatWasReadConcernsNobody(t *testing.T) {
	t.Parallel()
	x := newIndex()
	x.serve(siteKind.GroupKind())
	at := func(name, version string, edit ...func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
		m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: version}}
		for _, e := range edit {
			e(m)
		}
		return m
	}
	asSite := func(m *metav1.PartialObjectMetadata) { m.UID, m.Generation = "u", 1 }
	site := cluster.Ref{GroupVersionKind: siteKind, Namespace: "default", Name: "a"}.Identity()
	if got := x.observe(siteKind, at("a", "1", asSite), exists); len(got) != 1 {
		t.Fatalf("a new resource concerns %v", got)
	}
	x.compared(site, &at("a", "1", asSite).ObjectMeta, &reads{
		objects:    map[cluster.Ref]string{{GroupVersionKind: configMaps, Namespace: "default", Name: "c"}: "5", {GroupVersionKind: configMaps, Namespace: "default", Name: "absent"}: ""},
		selections: []cluster.Selection{{Kind: secretKind, Namespace: "default", Labels: map[string]string{"a": "b"}}},
	})
	labelled := func(m *metav1.PartialObjectMetadata) { m.Labels = map[string]string{"a": "b"} }
	owned := func(m *metav1.PartialObjectMetadata) {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v2", Kind: "Site", UID: "u"}}
	}
	for i, row := range []struct {
		reason string
		kind   schema.GroupVersionKind
		object *metav1.PartialObjectMetadata
		what   event
		want   bool
	}{
		{"the status alone is another one", siteKind, at("a", "2", asSite), exists, false},
		{"the spec is another one", siteKind, at("a", "3", asSite, func(m *metav1.PartialObjectMetadata) { m.Generation = 2 }), exists, true},
		{"this version was read", configMaps, at("c", "5"), exists, false},
		{"it is a newer one", configMaps, at("c", "6"), exists, true},
		{"it is gone", configMaps, at("c", "6"), gone, true},
		{"it was read as absent", configMaps, at("absent", "6"), gone, false},
		{"it exists now", configMaps, at("absent", "7"), exists, true},
		{"nobody has read it", configMaps, at("other", "7"), exists, false},
		{"it is selected", secretKind, at("s", "1", labelled), exists, true},
		{"it is not selected any more", secretKind, at("s", "2"), exists, true},
		{"it never was", secretKind, at("s", "3"), exists, false},
		{"it belongs to the resource, in whatever version of its kind", secretKind, at("mine", "1", owned), exists, true},
		{"that is known", secretKind, at("mine", "2", owned), exists, false},
		{"it does not belong to it any more", secretKind, at("mine", "3"), exists, true},
		{"a label names the resource", secretKind, at("kro", "1", func(m *metav1.PartialObjectMetadata) { m.Labels = map[string]string{"kro.run/instance-id": "u"} }), exists, true},
		{"the resource is gone", siteKind, at("a", "4", asSite), gone, true},
		{"nobody is left who has read it", configMaps, at("c", "9"), exists, false},
	} {
		if got := x.observe(row.kind, row.object, row.what); (len(got) > 0) != row.want {
			t.Errorf("%d: %s: it concerns %v", i, row.reason, got)
		}
	}
	if len(x.readers)+len(x.selecting)+len(x.resources)+len(x.byUID) != 0 {
		t.Errorf("the index keeps something of a resource that is gone: %+v", x)
	}
}

func TestWhatOnlyRepeatsAMarkBelongsToNobody(t *testing.T) {
	t.Parallel()
	x := newIndex()
	x.serve(siteKind.GroupKind())
	site := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "u"}}
	x.observe(siteKind, site, exists)
	mark := map[string]string{"example.com/of": "u"}
	by := func(apiVersion, kind string, controls bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, UID: "u", Controller: &controls}}
	}
	for name, row := range map[string]struct {
		reason string
		kind   schema.GroupVersionKind
		meta   metav1.ObjectMeta
		want   bool
	}{
		"a label":                  {"so kro marks its objects", configMaps, metav1.ObjectMeta{Labels: mark}, true},
		"an annotation":            {"so this engine marks them", configMaps, metav1.ObjectMeta{Annotations: mark}, true},
		"a reference":              {"so most operators do", configMaps, metav1.ObjectMeta{OwnerReferences: by("example.com/v1", "Site", true)}, true},
		"a ReplicaSet":             {"it has the annotations of its Deployment", schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, metav1.ObjectMeta{Annotations: mark, OwnerReferences: by("apps/v1", "Deployment", true)}, false},
		"an EndpointSlice":         {"it has the labels of its Service", schema.GroupVersionKind{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"}, metav1.ObjectMeta{Labels: mark, OwnerReferences: by("v1", "Service", true)}, false},
		"Endpoints":                {"they have the labels of their Service, and no reference", schema.GroupVersionKind{Version: "v1", Kind: "Endpoints"}, metav1.ObjectMeta{Labels: mark}, false},
		"Endpoints of a resource":  {"an operator has made them", schema.GroupVersionKind{Version: "v1", Kind: "Endpoints"}, metav1.ObjectMeta{OwnerReferences: by("example.com/v1", "Site", true)}, true},
		"an owner that is no more": {"it does not control the object, and has not made it", configMaps, metav1.ObjectMeta{Labels: mark, OwnerReferences: by("v1", "ConfigMap", false)}, true},
	} {
		row.meta.Namespace, row.meta.Name = "default", "o"
		if got := len(x.ownersOf(row.kind, &metav1.PartialObjectMetadata{ObjectMeta: row.meta})) > 0; got != row.want {
			t.Errorf("%s: belongs to the resource: %t, want %t: %s", name, got, row.want, row.reason)
		}
	}
}
