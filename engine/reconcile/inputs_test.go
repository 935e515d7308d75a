package reconcile_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/status"
)

const reader = `
inputs: {
	region: {apiVersion: "v1", kind: "ConfigMap", name: "region-\(cr.spec.name)"}
	others: {apiVersion: "v1", kind: "ConfigMap", selector: role: "other"}
}
components: web: objects: o: {
	apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"
	data: region: inputs.region.object.data.name
}
components: count: objects: o: {
	apiVersion: "v1", kind: "ConfigMap", metadata: name: "count"
	data: names: "\([for n, _ in inputs.others.objects {n}])"
}
`

func TestInputsAreAwaitedByNameAndSelector(t *testing.T) {
	t.Parallel()
	b := newBench(t, strings.Replace(reader, `"\([for n, _ in inputs.others.objects {n}])"`, `"\(len([for n, _ in inputs.others.objects {n}]))"`, 1))
	b.rest()
	b.expect("the one by name is not there", "False WaitingForValue", "web: waiting for", "inputs.region.object")
	if got := b.data("count", "names"); got != "0" {
		t.Errorf("a selector that selects nothing selects none, got %q", got)
	}

	b.put(settings("default", "region-shop", map[string]any{"name": "north"}))
	other := settings("default", "a", nil)
	other["metadata"].(map[string]any)["labels"] = map[string]any{"role": "other"}
	b.put(other)
	b.put(settings("elsewhere", "region-store", map[string]any{"name": "wrong"}))
	b.rest()
	b.expect("both are there", "True Ready")
	if got := b.data("web", "region") + b.data("count", "names"); got != "north1" {
		t.Errorf("got %s, want what the inputs say", got)
	}

	b.put(settings("default", "region-shop", map[string]any{"name": "south"}))
	b.rest()
	if got := b.data("web", "region"); got != "south" {
		t.Errorf("got %s, want the changed value", got)
	}

	act(t, b.memory, map[string]any{"name": "store"})
	b.rest()
	b.expect("the name depends on the spec, and one of another namespace does not count", "False WaitingForValue", "inputs.region.object")
	if got := b.data("web", "region"); got != "south" {
		t.Errorf("got %s, want the running object as it was", got)
	}
	b.put(settings("default", "region-store", map[string]any{"name": "east"}))
	b.rest()
	if got := b.data("web", "region"); got != "east" {
		t.Errorf("got %s, want that of the other reference", got)
	}
}

func TestAnInputOfAnUnservedKindIsAwaited(t *testing.T) {
	t.Parallel()
	kind := schema.GroupKind{Group: "db.example.com", Kind: "Database"}
	b := newBench(t, `
inputs: db: {apiVersion: "db.example.com/v1", kind: "Database", name: "main"}
components: web: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web", data: host: inputs.db.object.spec.host}
`)
	if again := b.rest(); again == 0 {
		t.Error("nothing makes it look again for the kind")
	}
	b.expect("it says what is missing", "False WaitingForValue", "input db: the cluster does not serve db.example.com/v1 Database")
	b.memory.Serve(kind, cluster.Namespaced)
	b.put(map[string]any{"apiVersion": "db.example.com/v1", "kind": "Database", "metadata": map[string]any{"namespace": "default", "name": "main"}, "spec": map[string]any{"host": "h"}})
	b.rest()
	b.expect("H1: it has appeared", "True Ready")
}

func TestAnInputOfAnotherNamespaceIsOutOfReach(t *testing.T) {
	t.Parallel()
	const spying = `
inputs: secret: {apiVersion: "v1", kind: "Secret", name: "token", namespace: cr.spec.name}
components: web: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web", data: token: inputs.secret.object.data.token}
`
	b := newBench(t, spying)
	b.put(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "shop", "name": "token"}, "data": map[string]any{"token": "eA=="}})
	b.rest()
	b.expect("J3: whoever may write the resource may not read there", "False InvalidPackage", "input secret: it is in namespace shop", `reach: Secret: {access: "read", namespaces: "shop": true}`)
	if b.find("ConfigMap", "web") != nil {
		t.Error("J3: what it read is in an object")
	}
	b.load(spying + `reach: Secret: {access: "read", namespaces: shop: true}`)
	b.rest()
	b.expect("the package allows it", "True Ready")
}

const configured = `
config: {image: string | *"web:1", limits: {cpu: int | *1, memory: int | *2}}
components: web: objects: o: {
	apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"
	data: all: "\(config.image) \(config.limits.cpu) \(config.limits.memory)"
}
`

func TestConfigurationComesInLayers(t *testing.T) {
	t.Parallel()
	b := newBench(t, configured)
	expect := func(reason, want string) {
		t.Helper()
		b.rest()
		if got := b.data("web", "all"); got != want {
			t.Errorf("%s: got %q, want %q", reason, got, want)
		}
	}
	expect("the defaults are the package's", "web:1 1 2")
	b.put(settings(configKey.Namespace, configKey.Name, map[string]any{"shop.yaml": "image: web:2\nlimits: {cpu: 4}\n", "another.yaml": "image: x"}))
	expect("the ConfigMap is over them, field by field", "web:2 4 2")
	annotate(t, b.memory, reconcile.AnnotationConfig, "limits: {cpu: 8}")
	expect("the annotation is over both", "web:2 8 2")
	b.put(settings(configKey.Namespace, configKey.Name, nil))
	expect("an empty ConfigMap says nothing", "web:1 8 2")

	long := "a: &a \"" + strings.Repeat("x", 4<<10) + "\"\n"
	doubled := "b0: &b0 [*a, *a]\n"
	for i := range 20 {
		doubled += fmt.Sprintf("b%d: &b%d [*b%d, *b%d]\n", i+1, i+1, i, i)
	}
	for text, parts := range map[string][]string{
		long + "limits: {cpu: [" + strings.Repeat("*a,", 4<<10) + "]}": {"annotation operetta.dev/config: ", "more than 1048576 bytes once its aliases are expanded"},
		long + doubled:                {"annotation operetta.dev/config: ", "once its aliases are expanded"},
		"a: &a [*a]":                  {"annotation operetta.dev/config: ", "once its aliases are expanded"},
		"a: &a 8\nlimits: {cpus: *a}": {"config.limits.cpus: unknown field"},
		"limits: {cpu: many}":         {"config.limits.cpu", "shop/body.cue:", "set by annotation operetta.dev/config"},
		"{: [":                        {"annotation operetta.dev/config: ", "yaml"},
		"limits: {cpus: 1}":           {"config.limits.cpus: unknown field", "set by annotation operetta.dev/config", "there are cpu, memory"},
	} {
		annotate(t, b.memory, reconcile.AnnotationConfig, text)
		expect("the running object stays with "+text, "web:1 8 2")
		b.expect(text, "False InvalidConfig", parts...)
		if got, _ := b.condition(status.ConditionStalled); !strings.HasPrefix(got, "True") {
			t.Errorf("Stalled is %s, although a person has to change something", got)
		}
	}
	b.put(settings(configKey.Namespace, configKey.Name, map[string]any{"shop.yaml": "image: 5"}))
	annotate(t, b.memory, reconcile.AnnotationConfig, "")
	b.rest()
	b.expect("the layer that is wrong is named", "False InvalidConfig", "config.image", "ConfigMap operators/settings, key shop.yaml")
	b.put(settings(configKey.Namespace, configKey.Name, map[string]any{"shop.yaml": "colour: red"}))
	b.rest()
	b.expect("so is one with a key that is not declared", "False InvalidConfig", "config.colour: unknown field", "ConfigMap operators/settings, key shop.yaml", "there are image, limits")
	b.load(strings.Replace(configured, "config: {", "config: {..., ", 1))
	b.rest()
	b.expect("the package may declare it open", "True Ready")
	b.load(strings.NewReplacer("config: {", "_config: {", "config.", "_config.").Replace(configured))
	b.rest()
	b.expect("or take no configuration at all", "False InvalidConfig", "takes no configuration", "ConfigMap operators/settings, key shop.yaml")
	b.put(settings(configKey.Namespace, configKey.Name, map[string]any{"another.yaml": "colour: red"}))
	b.rest()
	b.expect("that of another package is none of its business", "True Ready")
}

// lockedConfig has every way of marking what the administrator sets.
const lockedConfig = `
#Limits: {@config(admin), cpu: int | *1}
#Account: string | *"default" @config(admin)
_lib: registry: string | *"example.com" @config(admin)
config: {
	image:     string | *"web:1" @config(admin)
	colour:    string | *"red"
	limits:    #Limits
	account:   #Account
	pull?:     string @config(admin)
	proxy:     null | {url: string @config(admin), port: int} | *null
	mirrors:   [...{url: string @config(admin)}] | *[{url: "a"}]
	labels:    [string]: string @config(admin)
	either:    *{a: int | *1 @config(admin)} | {b: int @config(admin)}
	deep: deeper: {size: int | *1, tier: string | *"free" @config(admin)}
}
config: _lib
components: web: objects: o: {
	apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"
	data: all: "\(config.image) \(config.colour) \(config.deep.deeper.size)"
}
`

func TestWhatTheAdministratorSetsNobodyElseDoes(t *testing.T) {
	t.Parallel()
	b := newBench(t, lockedConfig)
	b.put(settings(configKey.Namespace, configKey.Name, map[string]any{"shop.yaml": "image: web:2\nproxy: {url: p, port: 1}\nlabels: {a: b}"}))
	annotate(t, b.memory, reconcile.AnnotationConfig, "colour: blue\ndeep: {deeper: {size: 5}}")
	b.rest()
	b.expect("what is not marked is everybody's", "True Ready")
	if got := b.data("web", "all"); got != "web:2 blue 5" {
		t.Errorf("got %q", got)
	}
	for text, path := range map[string]string{
		"image: evil:1":                              "config.image",
		"image: null":                                "config.image",
		"image: {a: b}":                              "config.image",
		"{colour: blue, limits: {cpu: 64}}":          "config.limits",
		"limits: null":                               "config.limits",
		"account: admin-sa":                          "config.account",
		"pull: evil":                                 "config.pull",
		"registry: evil.example.com":                 "config.registry",
		"proxy: {url: evil}":                         "config.proxy.url",
		"proxy: null":                                "config.proxy",
		"mirrors: []":                                "config.mirrors",
		"labels: {any: thing}":                       "config.labels.any",
		"either: {a: 2}":                             "config.either.a",
		"either: {b: 2}":                             "config.either.b",
		"deep: {deeper: {size: 2, tier: gold}}":      "config.deep.deeper.tier",
		"deep: {deeper: null}":                       "config.deep.deeper",
		"deep: []":                                   "config.deep",
		"{image: evil:1, account: x, colour: green}": "config.account",
	} {
		annotate(t, b.memory, reconcile.AnnotationConfig, text)
		b.rest()
		b.expect(text, "False InvalidConfig", path+": only the administrator sets this (set by annotation operetta.dev/config)", "shop/body.cue:")
		if got := b.data("web", "all"); got != "web:2 blue 5" {
			t.Errorf("%s: the object is %q", text, got)
		}
	}
	annotate(t, b.memory, reconcile.AnnotationConfig, "")
	b.rest()
	b.expect("the administrator sets all of it", "True Ready")
}

func TestAConfigurationOfTheResourceItselfIsNoWayRoundItsHooks(t *testing.T) {
	t.Parallel()
	for text, reason := range map[string]string{
		"{: [":             "no YAML",
		"image: 5":         "a contradiction",
		"secret: evil":     "what the administrator sets",
		"unheard: of":      "what is not declared",
		"which: elsewhere": "it cannot be said which components there are",
	} {
		b := newBench(t, `
config: {image: string | *"backup:1", secret: string | *"s" @config(admin), which: string | *"a"}
_parts: a: web: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"}
components: _parts[config.which]
hooks: beforeDelete: backup: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "backup", spec: image: config.image}
`)
		b.rest()
		annotate(t, b.memory, reconcile.AnnotationConfig, text)
		b.rest()
		act(t, b.memory, deleted)
		b.rest()
		if len(b.hooksRun()) == 0 || b.find("ConfigMap", "web") == nil {
			t.Errorf("%s: the hook did not run, or the objects did not wait for it: %v", reason, b.memory.Refs())
		}
	}
}

func TestAnnotationsThatDoSomethingToOthersCountWhereTheAdministratorSays(t *testing.T) {
	t.Parallel()
	b := newBench(t, `
components: web: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"}
hooks: beforeDelete: backup: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "backup"}
`)
	b.reconciler.Allow = nil
	b.rest()
	annotate(t, b.memory, reconcile.AnnotationSkipHooks, "true")
	act(t, b.memory, deleted)
	b.rest()
	if len(b.hooksRun()) == 0 || b.find("ConfigMap", "web") == nil {
		t.Errorf("the hook was skipped: %v", b.memory.Refs())
	}
	b.reconciler.Allow = []string{reconcile.AnnotationSkipHooks}
	b.rest()
	if b.find("ConfigMap", "web") != nil {
		t.Error("the administrator allows it, and the resource is still there")
	}
}

func TestAnInputMayChooseTheComponents(t *testing.T) {
	t.Parallel()
	b := newBench(t, `
inputs: choice: {apiVersion: "v1", kind: "ConfigMap", name: "choice"}
_releases: {
	a: web: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a"}
	b: web: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "b"}
}
components: _releases[inputs.choice.object.data.which]
`)
	b.rest()
	b.expect("which it is cannot be said", "False InvalidPackage", "which components there are cannot be decided", "inputs.choice.object")
	b.put(settings("default", "choice", map[string]any{"which": "a"}))
	b.rest()
	b.expect("the input is there", "True Ready")
	b.put(settings("default", "choice", map[string]any{"which": "b"}))
	b.rest()
	if b.find("ConfigMap", "a") != nil || b.find("ConfigMap", "b") == nil {
		t.Error("the other choice has not replaced the first")
	}
	b.put(settings("default", "choice", nil))
	b.rest()
	b.expect("it cannot be said any more", "False InvalidPackage")
	if b.find("ConfigMap", "b") == nil {
		t.Error("what is not decided was deleted")
	}
}
