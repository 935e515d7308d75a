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

// expectDeleted expects the operator to have deleted objects of some resources since a mark: one of each
// resource, in this order.
func (s *env) expectDeleted(from controlplane.AuditMark, resources ...string) {
	s.T.Helper()
	var got []string
	deletes := s.OperatorRequests(from).WithVerbs("delete").Filter(func(e controlplane.AuditEvent) bool { return e.Namespace == s.Namespace && e.Code == 200 })
	for _, e := range deletes {
		got = append(got, e.Resource)
	}
	if !slices.Equal(got, resources) {
		s.T.Errorf("deleted %q, wanted %q", got, resources)
	}
}

// teardownLimit is how long a deletion may take, whatever the state of the package.
const teardownLimit = time.Minute

// expectTornDown waits until a deleted resource is gone, and fails after teardownLimit.
func (s *env) expectTornDown(cr *unstructured.Unstructured, kinds ...string) {
	s.T.Helper()
	began := time.Now()
	s.ExpectFinished(cr, kinds...)
	s.T.Logf("gone after %s", harness.Elapsed(began))
	harness.ExpectWithin(s.T, teardownLimit, "the deletion", time.Since(began))
}

// packageDamages are states of the package at the time that a resource is deleted. The operator has seen
// each of them before the deletion.
var packageDamages = map[string]struct {
	reason string
	do     func(s *env, p *testPackage, cr *unstructured.Unstructured)
}{
	"broken": {"the last good version knows the objects, and is not needed", func(s *env, p *testPackage, _ *unstructured.Unstructured) {
		p.replace(s, "level=ERROR", func() { harness.WriteFile(p.T, p.file(), "package "+p.Name+"\n components: {{{\n") })
	}},
	"gone": {"the same", func(s *env, p *testPackage, _ *unstructured.Unstructured) {
		p.replace(s, "level=ERROR", func() {
			if err := os.RemoveAll(p.Dir); err != nil {
				p.T.Fatal(err)
			}
		})
	}},
	"newer": {"it renders other objects, and has written none of them", func(s *env, p *testPackage, cr *unstructured.Unstructured) {
		s.pause(cr)
		p.replace(s, "package replaced", p.renameTopComponent)
	}},
	"newer and rolled out": {"its objects are in the inventory", func(s *env, p *testPackage, cr *unstructured.Unstructured) {
		p.replace(s, "package replaced", p.renameTopComponent)
		s.ExpectObject(s.Ref("Secret", "summit-shop-a"), "to exist", harness.Exists)
		s.ExpectResourceReady(cr)
	}},
	"less": {"most of what is there is in no version that runs", func(s *env, p *testPackage, cr *unstructured.Unstructured) {
		s.pause(cr)
		p.replace(s, "package replaced", p.keepFirstComponent)
	}},
	"newer after a restart": {"the process has never seen the older one", func(s *env, p *testPackage, cr *unstructured.Unstructured) {
		s.pause(cr)
		p.restart(s, p.renameTopComponent)
	}},
	"newer and rolled out after a restart": {"the same, and it has pruned", func(s *env, p *testPackage, cr *unstructured.Unstructured) {
		p.restart(s, p.renameTopComponent)
		s.ExpectObject(s.Ref("Secret", "summit-shop-a"), "to exist", harness.Exists)
		s.ExpectResourceReady(cr)
	}},
	"less after a restart": {"the process has never seen most of the objects", func(s *env, p *testPackage, cr *unstructured.Unstructured) {
		s.pause(cr)
		p.restart(s, p.keepFirstComponent)
	}},
}

func TestG2DeletionNeedsNoPackageThatWorksOrIsTheSame(t *testing.T) {
	t.Parallel()
	for name, harm := range packageDamages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			p := newTestPackage(t, "torn"+strings.ReplaceAll(name, " ", ""), layeredBody)
			s.StartOperator(p.Dir)
			cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
			s.ExpectResourceReady(cr)
			harm.do(s, p, cr)
			from := harness.MarkAudit(t)
			s.Delete(cr)
			s.expectTornDown(cr, layeredKinds...)
			s.expectDeleted(from, "secrets", "serviceaccounts", "configmaps")
			if applied := s.OperatorRequests(from).Filter(isOfACoreKind).WithVerbs("patch", "create"); len(applied) > 0 {
				t.Errorf("%s: objects were written after the deletion: %s", harm.reason, applied)
			}
		})
	}
}

func isOfACoreKind(e controlplane.AuditEvent) bool { return e.Group == "" && !harness.IsEvent(e) }

// replace changes the package of a running operator, and waits until the operator logs it.
func (p *testPackage) replace(s *env, line string, change func()) {
	p.T.Helper()
	position := s.Operator.Log.Len()
	change()
	s.Operator.ExpectLogAfter(position, line)
}

// restart changes the package while the operator is stopped.
func (p *testPackage) restart(s *env, change func()) {
	p.T.Helper()
	s.Operator.Stop()
	change()
	s.StartOperator(p.Dir)
}

// file is the only file of the package.
func (p *testPackage) file() string { return p.Dir + "/" + p.Name + ".cue" }

// renameTopComponent renames a component of layered, and its object.
func (p *testPackage) renameTopComponent() {
	p.T.Helper()
	b, err := os.ReadFile(p.file())
	if err != nil {
		p.T.Fatal(err)
	}
	harness.WriteFile(p.T, p.file(), strings.NewReplacer("components: top:", "components: summit:", "top-", "summit-").Replace(string(b)))
}

// keepFirstComponent removes all components of layered except for the first one.
func (p *testPackage) keepFirstComponent() {
	p.T.Helper()
	b, err := os.ReadFile(p.file())
	if err != nil {
		p.T.Fatal(err)
	}
	kept, _, _ := strings.Cut(string(b), "components: middle:")
	harness.WriteFile(p.T, p.file(), kept)
}

// waysToLosePackage are the ways in which a resource can lose its package before it is deleted.
var waysToLosePackage = map[string]func(s *env, p *testPackage, cr *unstructured.Unstructured, reason string, lose func()){
	"while the operator runs": func(s *env, _ *testPackage, cr *unstructured.Unstructured, reason string, lose func()) {
		lose()
		s.ExpectNotReady(cr, reason)
		s.Delete(cr)
	},
	"while the operator is away": func(s *env, p *testPackage, cr *unstructured.Unstructured, _ string, lose func()) {
		s.Operator.Stop()
		lose()
		s.Delete(cr)
		s.StartOperator(p.Dir)
	},
}

const needsInputBody = `
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
	p := newTestPackage(t, "noinput", needsInputBody)
	for name, way := range waysToLosePackage {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			input := s.Create(s.ConfigMap("region", map[string]any{"name": "north"}))
			s.StartOperator(p.Dir)
			cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
			s.ExpectResourceReady(cr)
			from := harness.MarkAudit(t)
			way(s, p, cr, "WaitingForValue", func() { s.Delete(input) })
			s.expectTornDown(cr, layeredKinds...)
			s.expectDeleted(from, "secrets", "serviceaccounts")
		})
	}
}

const needsKindBody = `
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

// installKind installs the CRD of the kind that a package with needsKindBody renders, and returns it.
func (p *testPackage) installKind() *unstructured.Unstructured {
	p.T.Helper()
	group := p.Name + ".gone.example.com"
	if err := harness.InstallCRDs(p.T.Context(), harness.WritePackage(p.T, "greeting", strings.Replace(greetingPackage, "greetings.example.com", group, 1))); err != nil {
		p.T.Fatal(err)
	}
	return harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "greetings."+group)
}

func TestH1KindOfAChildThatGoesAndReturnsIsUsedAgain(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "kindreturns", needsKindBody)
	definition := p.installKind()
	s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	s.Delete(definition)
	s.ExpectGone(definition)
	t.Log(s.ExpectNotReady(cr, "KindNotServed", "route: ", "Greeting"))
	p.installKind()
	route := harness.Object(p.Name+".gone.example.com/v1", "Greeting", s.Namespace, "route")
	took := harness.Within(t, kindLimit, "the object of the kind that returned", func() error {
		u, err := harness.GetOrNil(t.Context(), route)
		if err == nil && u == nil {
			err = harness.ErrNotYet
		}
		return err
	})
	t.Logf("applied %s after its definition", took.Round(time.Millisecond))
	s.ExpectResourceReady(cr)
}

func TestG2DeletionNeedsNoKindOfAChild(t *testing.T) {
	t.Parallel()
	for name, way := range waysToLosePackage {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			p := newTestPackage(t, "nokind"+strings.ReplaceAll(name, " ", ""), needsKindBody)
			definition := p.installKind()
			s.StartOperator(p.Dir)
			cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
			s.ExpectResourceReady(cr)
			from := harness.MarkAudit(t)
			way(s, p, cr, "KindNotServed", func() {
				s.Delete(definition)
				s.ExpectGone(definition)
			})
			s.expectTornDown(cr, layeredKinds...)
			s.expectDeleted(from, "secrets", "configmaps")
		})
	}
}
