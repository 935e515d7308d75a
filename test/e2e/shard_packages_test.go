package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/controller"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// packageWriters returns who has written Packages and PackageRevisions since a mark.
func (f *fleet) packageWriters(from controlplane.AuditMark) []string {
	f.T.Helper()
	by := map[string]bool{}
	for _, e := range f.RequestsOf(from, slices.Collect(maps.Keys(f.users))...).Writes() {
		if strings.HasPrefix(e.Resource, "package") || e.Resource == "customresourcedefinitions" {
			by[strings.TrimPrefix(e.User, f.AccountUser(""))] = true
		}
	}
	return slices.Sorted(maps.Keys(by))
}

// expectVersion waits until the notes of all resources have a version.
func (f *fleet) expectVersion(all []*unstructured.Unstructured, version string) {
	f.T.Helper()
	for _, cr := range all {
		f.ExpectData("note-"+cr.GetName(), "version", version)
	}
}

// isInEachShard reports whether each shard of a number has one of some resources. Their UIDs decide that.
func isInEachShard(all []*unstructured.Unstructured, count int) bool {
	for i := range count {
		if !slices.ContainsFunc(all, func(u *unstructured.Unstructured) bool {
			return controller.Shard{Index: i, Count: count}.Contains(u.GetUID())
		}) {
			return false
		}
	}
	return true
}

// One process decides about a Package, and all serve what it has decided: when it is changed, while that process is dead, by canary, and
// while the number of shards changes.
func TestF39ShardsServeAPackageThatOneOfThemWrites(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	f := &fleet{env: s, args: []string{"--packages-from-cluster", "--package-selector", "test=" + s.Namespace}, users: map[string]bool{}}
	p := s.NewPackageObject("objsharded")
	from := harness.MarkAudit(t)
	first, second := f.member("0of2", 0, 2), f.member("1of2", 1, 2)
	p.Apply(p.InlineBody(note("a")))
	p.Expect("Ready", "True", "Served")
	var all []*unstructured.Unstructured
	for i := 0; i < 8 || !isInEachShard(all, 2) || !isInEachShard(all, 3); i++ {
		all = append(all, s.Create(p.Thing(s.Env, fmt.Sprint("r", i), nil)))
	}
	for _, cr := range all {
		s.ExpectResourceReady(cr)
	}
	p.Apply(p.InlineBody(note("b")))
	f.expectVersion(all, "b")
	count := f.expectOneWriter(from)
	if len(count) != 2 {
		t.Errorf("the writers are %v", count)
	}
	t.Logf("of %d resources: %v", len(all), count)
	s.ExpectObject(p.Ref(), "to count the resources of both", func(u *unstructured.Unstructured) error {
		revisions, _ := harness.Field(u, "status", "revisions").([]any)
		if len(revisions) != 1 || harness.Field(u, "status", "resources") != int64(len(all)) {
			return fmt.Errorf("it counts %v of %v", revisions, harness.Field(u, "status", "resources"))
		}
		return nil
	})

	// The process that decides dies while the Package is edited: the other one goes on, and decides nothing.
	first.Kill()
	p.Apply(p.InlineBody(note("c")))
	for _, cr := range all {
		s.Patch(cr, harness.Spec(map[string]any{"text": "x"}))
	}
	left := count[f.AccountUser("1of2")]
	served := func() int {
		n := 0
		for _, cr := range all {
			if u := s.Get("ConfigMap", "note-"+cr.GetName()); harness.Field(u, "data", "text") == "x" && harness.Field(u, "data", "version") == "b" {
				n++
			}
		}
		return n
	}
	harness.Eventually(t, "the other shard to go on with what was decided", func() error {
		if n := served(); n < left {
			return fmt.Errorf("%d are served", n)
		}
		return nil
	})
	if n := served(); n != left {
		t.Errorf("%d resources are served, and %d are of the shard that is left", n, left)
	}
	f.expectOneWriter(from)

	// Three take over: nothing is served twice, and the edit that nobody has decided about comes to all.
	second.Stop()
	from = harness.MarkAudit(t)
	members := []*harness.Operator{f.member("2of3", 2, 3), f.member("1of3", 1, 3), f.member("0of3", 0, 3)}
	f.expectVersion(all, "c")
	f.expectOneWriter(from)

	// A canary is decided upon by one, and tried by whoever has the resource.
	p.Apply(canaryNote(p, note("d"), map[string]any{"share": "100%", "readyFor": "1s"}))
	f.expectVersion(all, "d")
	s.ExpectObject(p.Ref(), "to have promoted it", func(u *unstructured.Unstructured) error {
		if harness.Field(u, "status", "canary", "phase") != "Promoted" {
			return fmt.Errorf("it is %v", harness.Field(u, "status", "canary"))
		}
		return nil
	})
	if n := len(f.expectOneWriter(from)); n != 3 {
		t.Errorf("%d of 3 have written", n)
	}
	if got := f.packageWriters(from); !slices.Equal(got, []string{"0of3"}) {
		t.Errorf("of three, %v have written the Package", got)
	}
	for _, cr := range all {
		s.Delete(cr)
	}
	s.Delete(p.Ref())
	for _, cr := range all {
		s.ExpectGone(cr)
	}
	s.ExpectGone(p.Ref())
	f.expectOneWriter(from)
	for _, o := range members {
		if strings.Contains(o.Log.From(0), "another process serves this kind") {
			t.Error("a shard takes another one for a duplicate")
		}
	}
}

// Shard 0 is the last one that a StatefulSet replaces, and it waits for the others to be ready.
func TestShardsOfANewVersionWaitForTheirDefinitionAndAreReady(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	const before = "#Spec: text: string | *\"a\"\n" + `components: web: objects: config: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web-\(cr.metadata.name)", data: text: cr.spec.text}` + "\n"
	after := strings.Replace(before, "#Spec: text", "#Spec: more: string | *\"m\"\n#Spec: text", 1) + "components: web: objects: config: data: more: cr.spec.more\n"
	old := newTestPackage(t, "rolled", before)
	next := newTestPackage(t, "rolled", after)
	f := &fleet{env: s, args: []string{"--health-probe-bind-address", harness.AnyPort}, users: map[string]bool{}}
	zero, one := f.member("0old", 0, 2, old.Dir), f.member("1old", 1, 2, old.Dir)
	var all []*unstructured.Unstructured
	for i := range 6 {
		all = append(all, s.Create(old.Thing(s.Env, fmt.Sprint("r", i), nil)))
	}
	for _, cr := range all {
		s.ExpectResourceReady(cr)
	}
	from := harness.MarkAudit(t)
	one.Stop()
	one = f.member("1new", 1, 2, next.Dir)
	one.ExpectLog("the package is served once shard 0 has installed its definition", "lacking=v1.spec.more")
	harness.Eventually(t, "it to be ready", func() error {
		if code := one.Probe("readyz"); code != 200 {
			return fmt.Errorf("it answers %d", code)
		}
		return nil
	})
	for _, e := range f.writes(from) {
		if strings.HasSuffix(e.User, "1new") {
			t.Errorf("it has sent %s %s while the definition lacks a field", e.Verb, e.RequestURI)
		}
	}
	// One of the old version that is started again meanwhile serves: nothing is missing.
	one.Stop()
	one = f.member("1oldagain", 1, 2, old.Dir)
	f.edit(all, "b")
	one.Stop()
	f.member("1newagain", 1, 2, next.Dir).ExpectLog("the package is served once shard 0 has installed its definition")
	zero.Stop()
	f.member("0new", 0, 2, next.Dir)
	for _, cr := range all {
		s.ExpectData("web-"+cr.GetName(), "more", "m")
	}
	f.expectOneWriterAtATime(from)
}

// expectOneWriterAtATime fails the test if a shard has written what another one has.
func (f *fleet) expectOneWriterAtATime(from controlplane.AuditMark) {
	f.T.Helper()
	by := map[string]byte{}
	for _, e := range f.writes(from) {
		name, shard := e.Name[strings.LastIndex(e.Name, "-")+1:], strings.TrimPrefix(e.User, f.AccountUser(""))[0]
		if other, known := by[name]; known && other != shard {
			f.T.Errorf("%s was written by shards %c and %c", name, other, shard)
		}
		by[name] = shard
	}
}
