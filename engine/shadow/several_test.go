package shadow

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	packages "operetta.dev/engine/source"
	"operetta.dev/test/inline"
)

// noteHeader begins the package of another kind, which reads the ConfigMap of a Site of the same name.
const noteHeader = `package note
import "operetta.dev/schemas/operator"
operator.#Controller
group: "example.com", kind: "Note"
versions: v1: spec: #Spec
#Spec: {}
cr: spec: #Spec
live: _
inputs: site: {apiVersion: "v1", kind: "ConfigMap", name: cr.metadata.name}
components: web: objects: n: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "note-\(cr.metadata.name)", data: size: inputs.site.object.data.size}
`

// TestSeveralPackagesAreComparedAtOnce: each resource with its own package. What one of them reads of another is compared
// again when it changes, and nothing else is.
func TestSeveralPackagesAreComparedAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(p *plane) {
		t := p.t
		for _, name := range []string{"a", "b"} {
			site, config := aSite(t, name, 1)
			p.put(site)
			p.put(config)
			note := inline.Object(t, `{apiVersion: example.com/v1, kind: Note, metadata: {name: `+name+`, namespace: default, uid: uid-note-`+name+`, generation: 1}, spec: {}}`)
			p.put(note)
			p.put(inline.Object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: note-`+name+`, namespace: default, uid: u-`+name+`, ownerReferences: [{apiVersion: example.com/v1, kind: Note, name: `+name+`, uid: uid-note-`+name+`}]}, data: {size: "1"}}`))
		}
		p.start(sized, Options{Concurrency: 4, UntilSame: false})
		sites := p.counted
		notes := &counting{Package: inline.Program(t, noteHeader)}
		p.shadow.Serve(plan.Version{Program: inline.Program(t, noteHeader), Evaluates: notes})
		p.settled()
		if s, _ := p.shadow.count(); s.All != 4 || s.Same != 4 {
			t.Fatalf("two resources of each of two kinds compare as %s", s)
		}
		before, beforeNotes := sites.n.Load(), notes.n.Load()
		_, config := aSite(t, "a", 2)
		p.put(config) // the live one of Site a, and an input of Note a
		p.settled()
		if s, _ := p.shadow.count(); s.Different != 2 || s.Same != 2 {
			t.Errorf("what both depend on has changed: %s", s)
		}
		if n, m := sites.n.Load()-before, notes.n.Load()-beforeNotes; n != perComparison || m != perComparison {
			t.Errorf("%d and %d evaluations: those that do not depend on it are compared, too", n, m)
		}
		p.shadow.Withdraw(siteKind.GroupKind())
		p.settled()
		if s, _ := p.shadow.count(); s.All != 2 || s.Different != 1 {
			t.Errorf("one package has gone, and there are %s", s)
		}
	})
}

// TestAConfigurationIsThatOfTheOperator: of the ConfigMap and of the resource, as they change.
func TestAConfigurationIsThatOfTheOperator(t *testing.T) {
	t.Parallel()
	const configured = `config: size: *"1" | string
components: web: objects: c: #CM & {metadata: name: cr.metadata.name, data: {size: config.size}}`
	inBubble(t, func(p *plane) {
		t := p.t
		site, config := aSite(t, "a", 1)
		p.put(site)
		p.put(config)
		p.start(configured, Options{ConfigMap: types.NamespacedName{Namespace: "operators", Name: "config"}})
		p.settled()
		if got := p.printed.last["a"]; got.State != Same {
			t.Errorf("with the defaults it is %v", got)
		}
		p.put(inline.Object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: config, namespace: operators, uid: c}, data: {site.yaml: "size: '2'"}}`))
		p.settled()
		if got := p.printed.last["a"]; got.fields() != 1 {
			t.Errorf("with a ConfigMap it is %v", got)
		}
		site.SetAnnotations(map[string]string{"operetta.dev/config": `size: "1"`})
		p.put(site)
		p.settled()
		if got := p.printed.last["a"]; got.State != Same {
			t.Errorf("with an annotation over that it is %v", got)
		}
	})
}

// TestAPatchIsPartOfWhatIsWanted: from when it comes until it goes.
func TestAPatchIsPartOfWhatIsWanted(t *testing.T) {
	t.Parallel()
	inBubble(t, func(p *plane) {
		t := p.t
		site, config := aSite(t, "a", 1)
		p.put(site)
		p.put(config)
		p.start(sized, Options{})
		p.settled()
		change := inline.Object(t, `{apiVersion: operetta.dev/v1alpha1, kind: Patch, metadata: {name: p, namespace: default, uid: p, generation: 1}, spec: {
			target: {apiVersion: example.com/v1, kind: Site, name: a}, patches: [{address: web.c, apiVersion: v1, kind: ConfigMap, strategicMerge: {data: {size: "7"}}}]}}`)
		p.put(change)
		p.settled()
		if got := p.printed.last["a"]; got.fields() != 1 || got.Objects[0].Fields[0].Wanted != `"7"` {
			t.Errorf("with a Patch it is %v", got)
		}
		p.remove(change)
		p.settled()
		if got := p.printed.last["a"]; got.State != Same {
			t.Errorf("without it again it is %v", got)
		}
	})
}

// TestPausedAndPinnedResourcesAreCompared: a pause, and a revision of a Package that a resource stays with, are about writes.
func TestPausedAndPinnedResourcesAreCompared(t *testing.T) {
	t.Parallel()
	inBubble(t, func(p *plane) {
		t := p.t
		for _, name := range []string{"paused", "pinned"} {
			site, config := aSite(t, name, 1)
			config.Object["data"] = map[string]any{"size": "2"}
			if name == "paused" {
				site.SetAnnotations(map[string]string{"operetta.dev/paused": "true"})
			} else {
				site.Object["status"] = map[string]any{"phase": "Ready", "package": map[string]any{"name": "site", "digest": "sha256:" + strings.Repeat("0", 64)}}
			}
			p.put(site)
			p.put(config)
		}
		p.start(sized, Options{})
		p.settled()
		for _, name := range []string{"paused", "pinned"} {
			if got := p.printed.last[name]; got.State != Different || got.fields() != 1 || got.Paused != (name == "paused") {
				t.Errorf("%s is %v", name, got)
			}
		}
		site, _ := aSite(t, "paused", 1)
		p.put(site)
		p.settled()
		if got := p.printed.last["paused"]; got.Paused || p.printed.said["paused"] != 2 {
			t.Errorf("the pause has ended, and it is %v", got)
		}
	})
}

// TestAnOverlayIsPartOfWhatIsWanted: as in a reconcile, and in every resource.
func TestAnOverlayIsPartOfWhatIsWanted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"site/site.cue":      header + sized,
		"overlay/size.cue":   "package overlay\n\ncomponents: [string]: objects: [string]: metadata: labels: team: \"a\"\n",
		"cue.mod/module.cue": "module: \"example.com/m@v0\"\nlanguage: version: \"v0.15.0\"\n",
	} {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loader := packages.Loader{Overlays: []string{filepath.Join(dir, "overlay")}}
	snapshot, err := loader.Folder(filepath.Join(dir, "site"))
	if err != nil {
		t.Fatal(err)
	}
	with, err := program.Load(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	inBubble(t, func(p *plane) {
		t := p.t
		site, config := aSite(t, "a", 1)
		p.put(site)
		p.put(config)
		p.start(sized, Options{})
		p.settled()
		p.shadow.Serve(plan.Version{Program: with})
		p.settled()
		if got := p.printed.last["a"]; got.fields() != 1 || got.Objects[0].Fields[0].Path != "metadata.labels.team" {
			t.Errorf("with an overlay it is %v", got)
		}
		config.SetLabels(map[string]string{"team": "a"})
		p.put(config)
		p.pass(debounce)
		p.settled()
		if got := p.printed.last["a"]; got.State != Same {
			t.Errorf("with its label it is %v", got)
		}
	})
}
