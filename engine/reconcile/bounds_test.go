package reconcile_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cuelang.org/go/cue/cuecontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/crd/conform"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// maxStatus is how large a status may become: the API server stores objects of 1.5 MiB,
// of which managedFields and the spec need their part.
const maxStatus = 768 << 10

// serverOf returns an API server that knows the kind of the bench.
func serverOf(t *testing.T) *conform.Server {
	t.Helper()
	spec := cuecontext.New().CompileString("{}")
	definition, err := crd.Generate(crd.CustomResource{
		Group: shopKind.Group, Kind: shopKind.Kind,
		Versions: []crd.Version{{Name: shopKind.Version, Served: true, Storage: true, Spec: spec}},
	})
	if err != nil {
		t.Fatal(err)
	}
	server, err := conform.NewServer(definition, shopKind.Version)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// admitted returns a status as the API server would store it, and fails the test if it
// would refuse it.
func admitted(t *testing.T, completion status.Completion, inventory ownership.Inventory) map[string]any {
	t.Helper()
	server := serverOf(t)
	built := status.Build(status.Input{
		Completion: completion, Generation: 1, Now: time.Unix(1000, 0), Package: "shop", Digest: "sha256:1", Version: "v1", Inventory: inventory.Encode(),
	})
	b, err := json.Marshal(built)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("the status takes %d KiB", len(b)>>10); len(b) > maxStatus {
		t.Errorf("I2: the status takes %d bytes, more than %d", len(b), maxStatus)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion": %q, "kind": %q, "metadata": {"name": "shop"}, "status": %s}`,
		shopKind.GroupVersion(), shopKind.Kind, b)); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Admit(u.Object, nil); err != nil {
		t.Errorf("I2: the API server refuses the status: %s", status.Shorten(err.Error(), 2000))
	}
	return built
}

// messageOf returns the message of the condition Ready.
func messageOf(s map[string]any) string {
	ready, _ := s["conditions"].([]any)[0].(map[string]any)
	text, _ := ready["message"].(string)
	return text
}

// The schema and the reader of the hooks have the same bounds: what the one lets in, the
// other reads.
func TestHooksAreBoundedByTheDefinitionAsByWhoReadsThem(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		hooks  []any
		refuse bool
	}{
		"all that there may be": {slices.Repeat(hookOf(strings.Repeat("x", crd.MaxHookName), strings.Repeat("y", crd.MaxHookDigest), "Verified"), crd.MaxHooks), false},
		"too many":              {slices.Repeat(hookOf("x", "y", "Verified"), crd.MaxHooks+1), true},
		"a long name":           {hookOf(strings.Repeat("x", crd.MaxHookName+1), "y", "Verified"), true},
		"a long digest":         {hookOf("x", strings.Repeat("y", crd.MaxHookDigest+1), "Verified"), true},
		"a long state":          {hookOf("x", "y", strings.Repeat("z", 64)), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cr := map[string]any{
				"apiVersion": shopKind.GroupVersion().String(), "kind": shopKind.Kind, "metadata": map[string]any{"name": "shop"},
				"status": map[string]any{"hooks": row.hooks},
			}
			if _, err := serverOf(t).Admit(cr, nil); (err != nil) != row.refuse {
				t.Errorf("the API server says: %v", err)
			}
			b := newBench(t, ordered)
			b.rest()
			b.edit(func(s map[string]any) { s["hooks"] = row.hooks })
			b.rest()
			if got, _ := b.condition("Ready"); strings.Contains(got, "StatusUnreadable") != row.refuse {
				t.Errorf("Ready is %s", got)
			}
		})
	}
}

func TestAThousandObjectsThatWaitFitIntoAStatus(t *testing.T) {
	t.Parallel()
	owner := ownership.Owner{Ref: cluster.Ref{GroupVersionKind: shopKind, Namespace: "default", Name: "shop"}, UID: "uid"}
	memory := memory.New()
	front := &unstructured.Unstructured{Object: settings("default", "front", nil)}
	front.SetFinalizers([]string{"example.com/backup"})
	front.SetAnnotations(map[string]string{ownership.OwnerAnnotation: owner.String()})
	front.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: shopKind.GroupVersion().String(), Kind: shopKind.Kind, Name: owner.Name, UID: owner.UID}})
	if _, err := memory.Put("operetta", front); err != nil {
		t.Fatal(err)
	}
	var data []ownership.Entry
	for i := range 1000 {
		data = append(data, ownership.Entry{Object: fmt.Sprint("o", i), APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprintf("%s-%d", strings.Repeat("x", 200), i)})
	}
	inventory := ownership.Inventory{}.
		With("data", nil, data).
		With("front", []string{"data"}, []ownership.Entry{{Object: "o", APIVersion: "v1", Kind: "ConfigMap", Name: "front"}})
	result, err := rollout.Teardown(t.Context(), memory, owner, inventory)
	if err != nil || result.Inventory.Len() != 1001 {
		t.Fatalf("%d objects are left of 1001 (error %v)", result.Inventory.Len(), err)
	}
	built := admitted(t, result.Completion, nil)
	if got := messageOf(built); !strings.Contains(got, "example.com/backup") || !strings.Contains(got, "data waits for it") {
		t.Errorf("it does not say what holds it: %s", got)
	}
	said, _ := built["components"].([]any)[1].(map[string]any)["message"].(string)
	if !strings.HasSuffix(said, "; and 990 more") {
		t.Errorf("it does not say how many wait: %s", said)
	}
}

func TestAStatusFitsWhateverThereIsToSay(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a long story ", 10000)
	many := func(n int, component func(i int) status.Component) status.Completion {
		out := status.Completion{Change: status.Unchanged}
		for i := range n {
			c := component(i)
			c.Name = fmt.Sprintf("a-component-with-a-name-of-sixty-three-characters-which-is-%04d", i)
			out.Components = append(out.Components, c)
		}
		return out
	}
	cases := map[string]struct {
		reason     string
		completion status.Completion
	}{
		"one long message": {"an API server quotes what it was given", many(1, func(int) status.Component {
			return status.Component{State: status.Retrying, Reason: status.ReasonApplyFailed, Message: long}
		})},
		"a long message of each of many": {"each has its share", many(1000, func(int) status.Component {
			return status.Component{State: status.Failed, Reason: status.ReasonInvalidObject, Message: long}
		})},
		"each waits for the one before": {"what blocks many does not name them all", many(1000, func(i int) status.Component {
			c := status.Component{State: status.Waiting, Reason: status.ReasonDependency, Message: "m"}
			if i > 0 {
				c.WaitsFor = []string{fmt.Sprintf("a-component-with-a-name-of-sixty-three-characters-which-is-%04d", i-1)}
			}
			return c
		})},
		"a fault of the whole": {"all mistakes of a package", status.Completion{
			Fault: status.Component{State: status.Failed, Reason: status.ReasonInvalidPackage, Message: long},
		}},
		"much to prune": {"", status.Completion{Pruning: long}},
	}
	for name, row := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			built := admitted(t, row.completion, nil)
			for _, c := range built["conditions"].([]any) {
				if n := len(c.(map[string]any)["message"].(string)); n > status.MaxMessage {
					t.Errorf("%s: a condition has a message of %d bytes", row.reason, n)
				}
			}
		})
	}
}

func TestALargeInventoryOfManyComponentsFitsIntoAStatus(t *testing.T) {
	t.Parallel()
	name := func(i int) string { return fmt.Sprintf("a-component-with-a-name-of-forty-%07d", i) }
	var inventory ownership.Inventory
	var completion status.Completion
	for i := range 100 {
		var entries []ownership.Entry
		for j := range 10 {
			entries = append(entries, ownership.Entry{
				Object: fmt.Sprintf("an-object-%d", j), APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy", Namespace: "a-namespace-of-24-bytes.",
				Name: fmt.Sprintf("a-name-of-fifty-four-characters-and-then-some-%03d-%03d", i, j), Digest: "0123456789abcdef", UIDPrefix: "01234567",
			})
		}
		var dependsOn []string
		for k := max(0, i-5); k < i; k++ {
			dependsOn = append(dependsOn, name(k))
		}
		inventory = inventory.With(name(i), dependsOn, entries)
		completion.Components = append(completion.Components, status.Component{
			Name: name(i), State: status.Waiting, Reason: status.ReasonDependency, Message: strings.Repeat("m", 3000), WaitsFor: dependsOn,
		})
	}
	b, err := json.Marshal(inventory)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("the inventory takes %d KiB", len(b)>>10); len(b) > 256<<10 {
		t.Errorf("I2: 1,000 objects take %d bytes, more than 256 KiB", len(b))
	}
	admitted(t, completion, inventory)
}
