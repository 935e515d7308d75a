package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
)

// expectDeleted expects the operator to have deleted objects of some resources since
// a mark: of each one, in this order (E).
func (s *site) expectDeleted(from controlplane.AuditMark, resources ...string) {
	s.t.Helper()
	var got []string
	deletes := s.operatorRequests(from).verbs("delete").only(func(e controlplane.AuditEvent) bool { return e.Namespace == s.namespace && e.Code == 200 })
	for _, e := range deletes {
		got = append(got, e.Resource)
	}
	if !slices.Equal(got, resources) {
		s.t.Errorf("deleted %q, wanted %q", got, resources)
	}
}

// teardownLimit is how long a deletion may take whatever has become of the package.
const teardownLimit = time.Minute

// expectTornDown waits for the end of a deleted resource within the limit.
func (s *site) expectTornDown(cr *unstructured.Unstructured, kinds ...string) {
	s.t.Helper()
	began := time.Now()
	s.expectFinished(cr, kinds...)
	s.t.Logf("gone after %s", since(began))
	if took := time.Since(began); took > teardownLimit {
		s.t.Errorf("the deletion took %s", took)
	}
}

func TestG2DeletionNeedsNoPackageThatWorksOrIsTheSame(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(p *small, o *operator){
		"broken": func(p *small, o *operator) {
			position := o.log.len()
			writeFile(p.t, p.file(), "package "+p.name+"\n components: {{{\n")
			o.expectLogAfter(position, "level=ERROR")
		},
		// At once: the deletion meets the swap, before or behind it.
		"newer": func(p *small, _ *operator) { p.renameTop() },
		"less":  func(p *small, _ *operator) { p.empty() },
		"newer and applied": func(p *small, o *operator) {
			position := o.log.len()
			p.renameTop()
			o.expectLogAfter(position, "package replaced")
		},
		"newer after a restart": func(p *small, o *operator) {
			o.stop()
			p.renameTop()
		},
		"less after a restart": func(p *small, o *operator) {
			o.stop()
			p.empty()
		},
		"gone": func(p *small, _ *operator) {
			if err := os.RemoveAll(p.dir); err != nil {
				p.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			p := newSmall(t, "torn"+strings.ReplaceAll(name, " ", ""), layered)
			o := s.operate(p.dir)
			cr := s.create(p.thing(s, "shop", map[string]any{}))
			s.expectAllReady(cr)
			from := mark(t)
			harm(p, o)
			s.delete(cr)
			if strings.HasSuffix(name, "restart") {
				s.operate(p.dir)
			}
			s.expectTornDown(cr, layeredKinds...)
			s.expectLayeredOrder(from)
		})
	}
}

// file is the one file of the package.
func (p *small) file() string { return p.dir + "/" + p.name + ".cue" }

// renameTop renames a component of layered, and its object.
func (p *small) renameTop() {
	p.t.Helper()
	b, err := os.ReadFile(p.file())
	if err != nil {
		p.t.Fatal(err)
	}
	writeFile(p.t, p.file(), strings.NewReplacer("components: top:", "components: summit:", "top-", "summit-").Replace(string(b)))
}

// empty takes all components of layered away but the first.
func (p *small) empty() {
	p.t.Helper()
	b, err := os.ReadFile(p.file())
	if err != nil {
		p.t.Fatal(err)
	}
	kept, _, _ := strings.Cut(string(b), "components: middle:")
	writeFile(p.t, p.file(), kept)
}

// expectLayeredOrder expects that each layer went after those above it.
func (s *site) expectLayeredOrder(from controlplane.AuditMark) {
	s.t.Helper()
	var got []string
	for _, e := range s.operatorRequests(from).verbs("delete").only(func(e controlplane.AuditEvent) bool { return e.Namespace == s.namespace && e.Code == 200 }) {
		got = append(got, e.Resource)
	}
	want := []string{"secrets", "serviceaccounts", "configmaps"}
	if got = slices.Compact(got); !slices.Equal(got, want) {
		s.t.Errorf("deleted %q, wanted %q", got, want)
	}
}

const reliant = `
#Spec: {}

inputs: region: {apiVersion: "v1", kind: "ConfigMap", name: "region"}
components: base: objects: settings: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "base"
	data: region: inputs.region.object.data.name
}
components: route: {
	dependsOn: base: {}
	objects: route: {
		apiVersion: "gone.example.com/v1"
		kind:       "Greeting"
		metadata: name: "route"
		spec: text: "hello"
	}
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

func TestG2DeletionNeedsNeitherTheInputsNorTheKindsOfChildren(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "reliant", reliant)
	if err := installCRDs(t.Context(), writePackage(t, "greeting", strings.Replace(greeting, "greetings.example.com", "gone.example.com", 1))); err != nil {
		t.Fatal(err)
	}
	input := s.create(s.configMap("region", map[string]any{"name": "north"}))
	s.operate(p.dir)
	cr := s.create(p.thing(s, "shop", map[string]any{}))
	s.expectAllReady(cr)
	from := mark(t)
	s.delete(object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "greetings.gone.example.com"))
	s.delete(input)
	s.delete(cr)
	s.expectTornDown(cr, "ConfigMap", "Secret")
	got := s.operatorRequests(from).verbs("delete").only(func(e controlplane.AuditEvent) bool { return e.Namespace == s.namespace && e.Resource != "greetings" })
	if len(got) != 2 || got[0].Resource != "secrets" || got[1].Resource != "configmaps" {
		t.Errorf("the order of deletion was %v", got)
	}
}
