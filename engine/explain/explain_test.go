package explain_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/history"
	"operetta.dev/engine/object"
	"operetta.dev/engine/ownership"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the pictures anew")

// now is the time at which the pictures are drawn.
var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// objects are the objects of a cluster that somebody may read only in part.
type objects struct {
	all []*unstructured.Unstructured
	// denied are kinds that may not be read.
	denied []string
}

func (o objects) mayRead(kind string) error {
	if slices.Contains(o.denied, kind) {
		return errors.New(strings.ToLower(kind) + "s is forbidden")
	}
	return nil
}

// GetLive returns an object.
func (o objects) GetLive(_ context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if err := o.mayRead(ref.Kind); err != nil {
		return nil, err
	}
	for _, u := range o.all {
		if object.RefOf(u) == ref {
			return u, nil
		}
	}
	return nil, nil
}

// ListLive returns the objects of a kind. The pictures have one workload with pods each.
func (o objects) ListLive(_ context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error) {
	if err := o.mayRead(s.Kind.Kind); err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, u := range o.all {
		if u.GroupVersionKind() == s.Kind && u.GetNamespace() == s.Namespace {
			out = append(out, u)
		}
	}
	return out, nil
}

// An operator is what an operator answers.
type operator struct {
	report history.Report
	err    error
}

// Reconciles implements explain.Operator.
func (o operator) Reconciles(context.Context, object.Ref) (history.Report, error) {
	return o.report, o.err
}

// operatorOf returns the operator of a picture: a comment says why it does not answer, or a file beside has its answer.
func operatorOf(t *testing.T, file, content string) explain.Operator {
	t.Helper()
	if _, why, says := strings.Cut(content, "# operator: "); says {
		why, _, _ = strings.Cut(why, "\n")
		return operator{err: errors.New(why)}
	}
	answer, err := os.ReadFile(strings.TrimSuffix(file, ".yaml") + ".report.json")
	if err != nil {
		return nil
	}
	var out operator
	if err := json.Unmarshal(answer, &out.report); err != nil {
		t.Fatal(err)
	}
	return out
}

// markOwn writes the marks of the resource, the first object, on the objects of its inventory, except some.
func markOwn(all []*unstructured.Unstructured, except map[*unstructured.Unstructured]bool) {
	values, _, _ := unstructured.NestedSlice(all[0].Object, "status", "inventory")
	inventory, _ := ownership.Decode(values) // one of the pictures is of an inventory that cannot be read
	all[0].SetUID("11111111-2222")
	owner := ownership.Owner{Ref: object.RefOf(all[0]), UID: all[0].GetUID()}
	for _, u := range all[1:] {
		_, _, listed := inventory.Find(object.RefOf(u), all[0].GetNamespace())
		if listed && !except[u] {
			ownership.Mark(u, owner)
		}
	}
}

// TestTreeSaysWhatAResourceWaitsFor draws each resource in testdata: the first document is the custom
// resource, the others are the objects of the cluster, and a comment says which kinds may not be read. The objects of
// its inventory are its own unless a comment says that they are unmarked.
func TestTreeSaysWhatAResourceWaitsFor(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata has no resources: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var o objects
			unmarked := map[*unstructured.Unstructured]bool{}
			for doc := range strings.SplitSeq(string(content), "\n---\n") {
				if kinds, ok := strings.CutPrefix(doc, "# denied: "); ok {
					o.denied = strings.Fields(strings.SplitN(kinds, "\n", 2)[0])
				}
				u := &unstructured.Unstructured{}
				unmarked[u] = strings.HasPrefix(doc, "# unmarked: ")
				text, err := yaml.YAMLToJSON([]byte(doc))
				if err == nil {
					err = u.UnmarshalJSON(text)
				}
				if err != nil {
					t.Fatal(err)
				}
				o.all = append(o.all, u)
			}
			markOwn(o.all, unmarked)
			reader := explain.Reader{Cluster: o}
			if operator := operatorOf(t, file, string(content)); operator != nil {
				reader.Operator = operator
			}
			r, err := reader.Read(t.Context(), object.RefOf(o.all[0]))
			if err != nil {
				t.Fatal(err)
			}
			got, golden := r.Tree(explain.Plain, now), strings.TrimSuffix(file, ".yaml")+".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the picture of %s (-want +got):\n%s", file, diff)
			}
		})
	}
}

func TestAResourceThatDoesNotExistIsAnError(t *testing.T) {
	t.Parallel()
	ref := object.Ref{Name: "web", Namespace: "default"}
	ref.GroupVersionKind.Kind = "Thing"
	if _, err := (explain.Reader{Cluster: objects{}}).Read(t.Context(), ref); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("it is explained: %v", err)
	}
}
