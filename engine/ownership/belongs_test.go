package ownership_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
)

// reaching returns a reach as a text has it.
func reaching(t testing.TB, text string) *program.Reach {
	t.Helper()
	r, err := program.ParseReach(text)
	if err != nil {
		t.Fatal(err)
	}
	return &r
}

func TestOnlyTheObjectItselfSaysWhoseItIs(t *testing.T) {
	t.Parallel()
	none := func(*unstructured.Unstructured) {}
	at := func(namespace string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { u.SetNamespace(namespace) }
	}
	marked := func(uid types.UID) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			other := owner
			other.UID = uid
			ownership.Mark(u, other)
		}
	}
	named := func(u *unstructured.Unstructured) {
		marked(owner.UID)(u)
		u.SetAnnotations(map[string]string{ownership.OwnerAnnotation: owner.String()})
	}
	refers := controlledBy("Shop", "shop", string(owner.UID))
	wide, known, unknown, far := owner, owner, owner, owner
	known.Reach, far.Reach = &program.Reach{}, reaching(t, "ConfigMap=there")
	wide.Namespace, wide.Reach = "", known.Reach
	rows := map[string]struct {
		reason string
		owner  ownership.Owner
		edit   []func(*unstructured.Unstructured)
		owns   bool
		want   ownership.Situation
	}{
		"nothing":                                  {"it is somebody's", known, []func(*unstructured.Unstructured){none}, false, ownership.Foreign},
		"a reference":                              {"it has the UID", known, []func(*unstructured.Unstructured){refers}, true, ownership.Owned},
		"a reference to another UID":               {"B2: the owner's name outlives it", known, []func(*unstructured.Unstructured){controlledBy("Shop", "shop", "0")}, false, ownership.Predecessor},
		"the UID in its marks":                     {"objects that outlive their owner have no reference", known, []func(*unstructured.Unstructured){marked(owner.UID)}, true, ownership.Owned},
		"the name in its marks":                    {"everybody knows the name", known, []func(*unstructured.Unstructured){named}, false, ownership.Unproven},
		"another UID in its marks":                 {"one of the same name, before this one, has left it behind", known, []func(*unstructured.Unstructured){marked("0")}, false, ownership.Unproven},
		"the UID, elsewhere":                       {"J3: the package does not reach there", known, []func(*unstructured.Unstructured){at("there"), marked(owner.UID)}, false, ownership.OutOfReach},
		"the UID, elsewhere, within reach":         {"the package says so", far, []func(*unstructured.Unstructured){at("there"), marked(owner.UID)}, true, ownership.Owned},
		"the name, elsewhere, within reach":        {"whoever writes objects there can write it", far, []func(*unstructured.Unstructured){at("there"), named}, false, ownership.Unproven},
		"a reference, elsewhere, within reach":     {"a reference is to the own namespace", far, []func(*unstructured.Unstructured){at("there"), refers}, false, ownership.Foreign},
		"a reference to that namespace's Shop":     {"it is not a predecessor of this one", far, []func(*unstructured.Unstructured){at("there"), controlledBy("Shop", "shop", "0")}, false, ownership.Foreign},
		"the UID, without a namespace":             {"J3: the package does not reach there", known, []func(*unstructured.Unstructured){at(""), marked(owner.UID)}, false, ownership.OutOfReach},
		"the UID, elsewhere, without the package":  {"nobody knows how far it reaches, and it is bound to the owner", unknown, []func(*unstructured.Unstructured){at("there"), marked(owner.UID)}, true, ownership.Owned},
		"the name, elsewhere, without the package": {"nobody knows how far it reaches", unknown, []func(*unstructured.Unstructured){at("there"), named}, false, ownership.OutOfReach},
		"a reference to one without a namespace":   {"such a reference is good everywhere", wide, []func(*unstructured.Unstructured){at("there"), refers}, true, ownership.Owned},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
			live.SetNamespace(owner.Namespace)
			live.SetName("a")
			live.SetUID("01234567-89ab")
			for _, edit := range row.edit {
				edit(live)
			}
			alone, _ := ownership.Classify(live, row.owner.WithInventory(nil))
			if owns := alone == ownership.Owned || alone == ownership.Terminating; owns != row.owns {
				t.Errorf("%s: by itself it is %s, want owned %v", row.reason, alone, row.owns)
			}
			forged := ownership.Inventory{{Component: "a", Objects: []ownership.Entry{{
				Object: "o", APIVersion: "v1", Kind: "ConfigMap", Namespace: live.GetNamespace(), Name: "a", ClusterScoped: live.GetNamespace() == "", UIDPrefix: "98765432",
			}}}}
			if got, _ := ownership.Classify(live, row.owner.WithInventory(forged)); got != row.want {
				t.Errorf("%s: it is %s, want %s", row.reason, got, row.want)
			}
			forged[0].Objects[0].UIDPrefix = "01234567"
			got, _ := ownership.Classify(live, row.owner.WithInventory(forged))
			confirmed := name == "the name in its marks" || name == "the name, elsewhere, within reach" // as an engine before this one has left it
			if confirmed && got != ownership.Owned || !confirmed && got != row.want {
				t.Errorf("%s: it is %s by the word of the inventory, want %s", row.reason, got, row.want)
			}
		})
	}
	if got, _ := ownership.Classify(nil, owner); got != ownership.Absent {
		t.Errorf("nothing is %s", got)
	}
	if far.Reaches(cluster.Ref{}) || known.Reaches(cluster.Ref{Namespace: "there"}) || !wide.Reaches(cluster.Ref{Namespace: "there"}) {
		t.Error("the reach is that of the package, and one without a namespace reaches everywhere")
	}
}
