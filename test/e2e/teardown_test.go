package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// expectDeleted expects the operator to have deleted objects of some resources since
// a mark: of each one, in this order (E).
func (s *site) expectDeleted(from controlplane.AuditMark, resources ...string) {
	s.T.Helper()
	var got []string
	deletes := s.OperatorRequests(from).Verbs("delete").Only(func(e controlplane.AuditEvent) bool { return e.Namespace == s.Namespace && e.Code == 200 })
	for _, e := range deletes {
		got = append(got, e.Resource)
	}
	if !slices.Equal(got, resources) {
		s.T.Errorf("deleted %q, wanted %q", got, resources)
	}
}

// teardownLimit is how long a deletion may take whatever has become of the package.
const teardownLimit = time.Minute

// expectTornDown waits for the end of a deleted resource within the limit.
func (s *site) expectTornDown(cr *unstructured.Unstructured, kinds ...string) {
	s.T.Helper()
	began := time.Now()
	s.ExpectFinished(cr, kinds...)
	s.T.Logf("gone after %s", harness.Since(began))
	if took := time.Since(began); took > teardownLimit {
		s.T.Errorf("the deletion took %s", took)
	}
}

// harms are what may have become of the package by the time that a resource goes.
// The operator has seen each of them before the deletion.
var harms = map[string]struct {
	reason string
	do     func(s *site, p *small, cr *unstructured.Unstructured)
}{
	"broken": {"the last good version knows the objects, and is not needed", func(s *site, p *small, _ *unstructured.Unstructured) {
		p.replace(s, "level=ERROR", func() { harness.WriteFile(p.T, p.file(), "package "+p.Name+"\n components: {{{\n") })
	}},
	"gone": {"the same", func(s *site, p *small, _ *unstructured.Unstructured) {
		p.replace(s, "level=ERROR", func() {
			if err := os.RemoveAll(p.Dir); err != nil {
				p.T.Fatal(err)
			}
		})
	}},
	"newer": {"it renders other objects, and has written none of them", func(s *site, p *small, cr *unstructured.Unstructured) {
		s.pause(cr)
		p.replace(s, "package replaced", p.renameTop)
	}},
	"newer and rolled out": {"its objects are in the inventory", func(s *site, p *small, cr *unstructured.Unstructured) {
		p.replace(s, "package replaced", p.renameTop)
		s.ExpectThat(s.Ref("Secret", "summit-shop-a"), "to exist", harness.Exists)
		s.ExpectAllReady(cr)
	}},
	"less": {"most of what is there is in no version that runs", func(s *site, p *small, cr *unstructured.Unstructured) {
		s.pause(cr)
		p.replace(s, "package replaced", p.empty)
	}},
	"newer after a restart": {"the process has never seen the older one", func(s *site, p *small, cr *unstructured.Unstructured) {
		s.pause(cr)
		p.restart(s, p.renameTop)
	}},
	"newer and rolled out after a restart": {"the same, and it has pruned", func(s *site, p *small, cr *unstructured.Unstructured) {
		p.restart(s, p.renameTop)
		s.ExpectThat(s.Ref("Secret", "summit-shop-a"), "to exist", harness.Exists)
		s.ExpectAllReady(cr)
	}},
	"less after a restart": {"the process has never seen most of the objects", func(s *site, p *small, cr *unstructured.Unstructured) {
		s.pause(cr)
		p.restart(s, p.empty)
	}},
}

func TestG2DeletionNeedsNoPackageThatWorksOrIsTheSame(t *testing.T) {
	t.Parallel()
	for name, harm := range harms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			p := newSmall(t, "torn"+strings.ReplaceAll(name, " ", ""), layered)
			s.Operate(p.Dir)
			cr := s.Create(p.Thing(s.Site, "shop", map[string]any{}))
			s.ExpectAllReady(cr)
			harm.do(s, p, cr)
			from := harness.Mark(t)
			s.Delete(cr)
			s.expectTornDown(cr, layeredKinds...)
			s.expectDeleted(from, "secrets", "serviceaccounts", "configmaps")
			if applied := s.OperatorRequests(from).Only(isOfACoreKind).Verbs("patch", "create"); len(applied) > 0 {
				t.Errorf("%s: objects were written after the deletion: %s", harm.reason, applied)
			}
		})
	}
}

func isOfACoreKind(e controlplane.AuditEvent) bool { return e.Group == "" && !harness.IsEvent(e) }

// replace changes the package under a running operator, and waits until it says so.
func (p *small) replace(s *site, line string, change func()) {
	p.T.Helper()
	position := s.Operator.Log.Len()
	change()
	s.Operator.ExpectLogAfter(position, line)
}

// restart changes the package between two lives of the operator.
func (p *small) restart(s *site, change func()) {
	p.T.Helper()
	s.Operator.Stop()
	change()
	s.Operate(p.Dir)
}

// file is the one file of the package.
func (p *small) file() string { return p.Dir + "/" + p.Name + ".cue" }

// renameTop renames a component of layered, and its object.
func (p *small) renameTop() {
	p.T.Helper()
	b, err := os.ReadFile(p.file())
	if err != nil {
		p.T.Fatal(err)
	}
	harness.WriteFile(p.T, p.file(), strings.NewReplacer("components: top:", "components: summit:", "top-", "summit-").Replace(string(b)))
}

// empty takes all components of layered away but the first.
func (p *small) empty() {
	p.T.Helper()
	b, err := os.ReadFile(p.file())
	if err != nil {
		p.T.Fatal(err)
	}
	kept, _, _ := strings.Cut(string(b), "components: middle:")
	harness.WriteFile(p.T, p.file(), kept)
}

// waysToLose are how a resource may lose what it needs before it is deleted.
var waysToLose = map[string]func(s *site, p *small, cr *unstructured.Unstructured, reason string, lose func()){
	"while the operator runs": func(s *site, _ *small, cr *unstructured.Unstructured, reason string, lose func()) {
		lose()
		s.ExpectNotReady(cr, reason)
		s.Delete(cr)
	},
	"while the operator is away": func(s *site, p *small, cr *unstructured.Unstructured, _ string, lose func()) {
		s.Operator.Stop()
		lose()
		s.Delete(cr)
		s.Operate(p.Dir)
	},
}

const reliantOnInput = `
#Spec: {}

inputs: region: {apiVersion: "v1", kind: "ConfigMap", name: "region"}
components: base: objects: settings: {
	apiVersion: "v1"
	kind:       "ServiceAccount"
	metadata: {
		name: "base"
		annotations: region: inputs.region.object.data.name
	}
}
components: top: {
	dependsOn: base: {}
	objects: settings: {
		apiVersion: "v1"
		kind:       "Secret"
		metadata: name: "top"
	}
}
`

func TestG2DeletionNeedsNoInput(t *testing.T) {
	t.Parallel()
	p := newSmall(t, "noinput", reliantOnInput)
	for name, way := range waysToLose {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			input := s.Create(s.ConfigMap("region", map[string]any{"name": "north"}))
			s.Operate(p.Dir)
			cr := s.Create(p.Thing(s.Site, "shop", map[string]any{}))
			s.ExpectAllReady(cr)
			from := harness.Mark(t)
			way(s, p, cr, "WaitingForValue", func() { s.Delete(input) })
			s.expectTornDown(cr, layeredKinds...)
			s.expectDeleted(from, "secrets", "serviceaccounts")
		})
	}
}

const reliantOnKind = `
#Spec: {}

components: base: objects: settings: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "base"
}
components: route: {
	dependsOn: base: {}
	objects: route: {
		apiVersion: "NAME.gone.example.com/v1"
		kind:       "Greeting"
		metadata: name: "route"
		spec: text: "hello"
	}
	policy: route: verify: "exists" // nobody serves it here
}
components: top: {
	dependsOn: route: {}
	objects: settings: {
		apiVersion: "v1"
		kind:       "Secret"
		metadata: name: "top"
	}
}
`

// installKind installs the kind that a package of reliantOnKind renders, and returns
// its definition.
func (p *small) installKind() *unstructured.Unstructured {
	p.T.Helper()
	group := p.Name + ".gone.example.com"
	if err := harness.InstallCRDs(p.T.Context(), harness.WritePackage(p.T, "greeting", strings.Replace(greeting, "greetings.example.com", group, 1))); err != nil {
		p.T.Fatal(err)
	}
	return harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "greetings."+group)
}

func TestH1KindOfAChildThatGoesAndReturnsIsUsedAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "kindreturns", reliantOnKind)
	definition := p.installKind()
	s.Operate(p.Dir)
	cr := s.Create(p.Thing(s.Site, "shop", map[string]any{}))
	s.ExpectAllReady(cr)
	s.Delete(definition)
	s.ExpectGone(definition)
	t.Log(s.ExpectNotReady(cr, "KindNotServed", "route: ", "Greeting"))
	p.installKind()
	route := harness.Object(p.Name+".gone.example.com/v1", "Greeting", s.Namespace, "route")
	took := harness.Within(t, kindLimit, "the object of the kind that returned", func() error {
		u, err := harness.Read(t.Context(), route)
		if err == nil && u == nil {
			err = harness.ErrNotYet
		}
		return err
	})
	t.Logf("applied %s after its definition", took.Round(time.Millisecond))
	s.ExpectAllReady(cr)
}

func TestG2DeletionNeedsNoKindOfAChild(t *testing.T) {
	t.Parallel()
	for name, way := range waysToLose {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			p := newSmall(t, "nokind"+strings.ReplaceAll(name, " ", ""), reliantOnKind)
			definition := p.installKind()
			s.Operate(p.Dir)
			cr := s.Create(p.Thing(s.Site, "shop", map[string]any{}))
			s.ExpectAllReady(cr)
			from := harness.Mark(t)
			way(s, p, cr, "KindNotServed", func() {
				s.Delete(definition)
				s.ExpectGone(definition)
			})
			s.expectTornDown(cr, layeredKinds...)
			s.expectDeleted(from, "secrets", "configmaps")
		})
	}
}
