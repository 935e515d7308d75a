// Package operettatest tests operator packages from Go, where a table in Go is better than one in CUE: with values
// that a program makes, or beside other Go code. It evaluates packages in the process of the test, as a reconcile
// does, and needs no cluster.
//
//	p := operettatest.Load(t, "./webapp")
//	d := p.Preview(t, operettatest.Given{CR: map[string]any{"spec": map[string]any{"image": "nginx"}}})
//	d.Object("web", "deployment")  // the manifest
//	d.Components["web"].State      // "Waiting"
//
//	c := p.Open(t, given)          // a cluster in memory
//	c.Run(t)                       // until nothing changes any more
//	c.Live(t, "web", "deployment") // the object in the cluster
//	c.Disturb(operettatest.Faults{CrashAfter: []int{3}}) // what fails in the next run
//
//	operettatest.Run(t, "./webapp")     // the tests in CUE beside the package, each as a subtest
//	operettatest.Explore(t, "./webapp", operettatest.ExploreOptions{}) // the same under many schedules
package operettatest

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"operetta.dev/engine/program"
	"operetta.dev/engine/registry"
	"operetta.dev/engine/render"
	"operetta.dev/engine/source"
	"operetta.dev/engine/status"
	"operetta.dev/engine/testcase"
)

// A Package is an operator package. It may be used by several tests at once.
type Package struct{ program *program.Program }

// loader reads packages, and the modules that they depend on from registries, as the commands do.
var loader = source.Loader{Modules: registry.New(registry.Options{})}

// Load loads the package in a folder. It fails the test with the faults of the package.
func Load(t testing.TB, dir string) *Package {
	t.Helper()
	snapshot, err := loader.Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Load(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	return &Package{p}
}

// Given is what the operator finds.
type Given struct {
	// CR is the custom resource. Its apiVersion, kind and name ("example") are added if it has none.
	CR map[string]any
	// Live are its objects by component and name: each stands for what the operator has applied, with these fields
	// over that.
	Live map[string]map[string]map[string]any
	// Others are objects of others, such as inputs and definitions of kinds.
	Others []map[string]any
	// Config is what an administrator has configured.
	Config map[string]any
}

// A Component is what the status says of a component.
type Component struct{ State, Reason, Message string }

// A Preview is what the next reconcile would do.
type Preview struct {
	// Objects are the manifests that are applied, or wait to be applied, by component and name.
	Objects map[string]map[string]map[string]any
	// Components are all components by name.
	Components map[string]Component
	// Phase is that of a status with these components, such as "Waiting".
	Phase string
	// Status are the fields that the package writes to the status.
	Status map[string]any
	// Faults are those of the resource and the package, with file:line.
	Faults []string
}

// Object returns a manifest, or nil.
func (d Preview) Object(component, name string) map[string]any { return d.Objects[component][name] }

// Preview returns what the operator would do about what is given. It fails the test if that cannot be told, or if something that is
// given is neither an object of the resource nor an input; faults of the resource
// and the package are in the Preview.
func (p *Package) Preview(t testing.TB, given Given) Preview {
	t.Helper()
	_, out := p.open(t, given)
	return previewOf(out)
}

// A Cluster is a cluster in memory in which the operator acts. It is for one goroutine.
type Cluster struct {
	session *render.Session
	// faults are those of the next run.
	faults testcase.InjectedFaults
}

// Open returns a cluster with what is given.
func (p *Package) Open(t testing.TB, given Given) *Cluster {
	t.Helper()
	session, _ := p.open(t, given)
	return &Cluster{session: session}
}

func (p *Package) open(t testing.TB, given Given) (*render.Session, render.Output) {
	t.Helper()
	plain := given
	if err := canonical(given, &plain); err != nil {
		t.Fatal(err)
	}
	session, out, err := render.NewSession(t.Context(), p.program, render.Input{
		CR: testcase.WithIdentity(p.program, plain.CR), Live: plain.Live, Manifests: plain.Others, Config: plain.Config,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range out.Unmatched {
		t.Errorf("given: %s is neither an object of the resource nor an input", text)
	}
	return session, out
}

// canonical turns values as people write them in Go, with int and []string, into those of JSON. It errors where a value is
// none.
func canonical(from, into any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// Preview returns what the operator would do now. It is empty if the custom resource does not exist any more.
func (c *Cluster) Preview(t testing.TB) Preview {
	t.Helper()
	out, err := c.session.Preview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return previewOf(out)
}

// Ready reports whether the custom resource is ready, and returns the reason and message of the condition.
func (c *Cluster) Ready() (bool, string) {
	return c.session.World().Ready(c.session.Resource())
}

// Phase returns the phase that the operator has written into the status, or "".
func (c *Cluster) Phase() string {
	stored, _, _ := unstructured.NestedMap(c.CR(), "status")
	return string(status.PhaseOf(stored))
}

// CR returns the custom resource, or nil.
func (c *Cluster) CR() map[string]any { return contentOf(c.session.World().Get(c.session.Resource())) }

// Live returns an object of a component in the cluster, or nil. It fails the test if the package has never rendered it.
func (c *Cluster) Live(t testing.TB, component, name string) map[string]any {
	t.Helper()
	ref, known := c.session.Ref(component, name)
	if !known {
		t.Fatalf("the package has not rendered %s of component %s", name, component)
	}
	return contentOf(c.session.World().Get(ref))
}

// Put writes an object as somebody else does: the custom resource, an object of it, or another one. It fails the test
// if the object is refused.
func (c *Cluster) Put(t testing.TB, object map[string]any) {
	t.Helper()
	var plain map[string]any
	if err := canonical(object, &plain); err != nil {
		t.Fatal(err)
	}
	if _, err := c.session.World().Put(&unstructured.Unstructured{Object: plain}); err != nil {
		t.Fatal(err)
	}
}

// Delete deletes the custom resource. It fails the test if there is none.
func (c *Cluster) Delete(t testing.TB) {
	t.Helper()
	if err := c.session.World().Delete(c.session.Resource()); err != nil {
		t.Fatal(err)
	}
}

func contentOf(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	return u.Object
}

func previewOf(out render.Output) Preview {
	d := Preview{Objects: map[string]map[string]map[string]any{}, Components: map[string]Component{}, Phase: string(out.Phase), Status: out.Status}
	for _, o := range out.Objects() {
		if d.Objects[o.Component] == nil {
			d.Objects[o.Component] = map[string]map[string]any{}
		}
		d.Objects[o.Component][o.Name] = o.Manifest
	}
	for _, c := range out.Components {
		d.Components[c.Name] = Component{State: string(c.State), Reason: string(c.Reason), Message: c.Message}
	}
	for _, f := range slices.Concat(out.Invalid, out.Faults) {
		d.Faults = append(d.Faults, f.Error())
	}
	return d
}
