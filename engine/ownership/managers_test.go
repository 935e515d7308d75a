package ownership_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/ownership"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

func TestTheManagersOfAFieldAreThoseOfItsPartsAndItsWhole(t *testing.T) {
	t.Parallel()
	live := fromYAML(t, `{apiVersion: v1, kind: Service, metadata: {name: a, managedFields: [
{manager: operetta, operation: Apply, fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {f:spec: {f:type: {}, f:ports: {'k:{"port":80,"protocol":"TCP"}': {".": {}, f:name: {}}}}}},
{manager: helm, operation: Apply, fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {f:spec: {f:type: {}, f:selector: {}, f:ports: {'k:{"port":443,"protocol":"TCP"}': {".": {}, f:name: {}}}}}},
{manager: helm, operation: Update, fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {f:spec: {f:type: {}}}},
{manager: controller, operation: Update, subresource: status, fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {f:status: {f:loadBalancer: {}}}},
{manager: editor, operation: Update, fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {f:metadata: {f:finalizers: {'v:"held"': {}}}}}]}}`)
	key := func(fields ...value.Field) fieldpath.PathElement {
		list := value.FieldList(fields)
		return fieldpath.PathElement{Key: &list}
	}
	port := func(n int) value.Field { return value.Field{Name: "port", Value: value.NewValueInterface(int64(n))} }
	protocol := value.Field{Name: "protocol", Value: value.NewValueInterface("UDP")}
	text, first := value.NewValueInterface("other"), 0
	for name, row := range map[string]struct {
		reason string
		path   fieldpath.Path
		want   []string
	}{
		"a field of two":             {"each is named once, in order", fieldpath.MakePathOrDie("spec", "type"), []string{"helm", "operetta"}},
		"a field of nobody":          {"there is nobody to name", fieldpath.MakePathOrDie("spec", "clusterIP"), nil},
		"what is around it":          {"they own something below it", fieldpath.MakePathOrDie("spec"), []string{"helm", "operetta"}},
		"a part of a whole":          {"the whole map is one manager's", fieldpath.MakePathOrDie("spec", "selector", "app"), []string{"helm"}},
		"the status":                 {"it is told how it was written", fieldpath.MakePathOrDie("status", "loadBalancer"), []string{"controller (status)"}},
		"an item by one of its keys": {"the API server uses a second one", fieldpath.MakePathOrDie("spec", "ports", key(port(80)), "name"), []string{"operetta"}},
		"an item of nobody":          {"no item has that key", fieldpath.MakePathOrDie("spec", "ports", key(port(8080)), "name"), nil},
		"an item with another key":   {"all keys have to be its own", fieldpath.MakePathOrDie("spec", "ports", key(port(80), protocol), "name"), nil},
		"an item by its place":       {"items that go by keys have no place", fieldpath.MakePathOrDie("spec", "ports", first, "name"), nil},
		"an item of a set":           {"any item stands for one", fieldpath.MakePathOrDie("metadata", "finalizers", text), []string{"editor"}},
		"a place in a set":           {"any item stands for one", fieldpath.MakePathOrDie("metadata", "finalizers", first), []string{"editor"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(row.want, ownership.ManagersOf(live).Of(row.path)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
	if got := ownership.ManagersOf(nil).Of(fieldpath.MakePathOrDie("spec")); got != nil {
		t.Errorf("an object that is not there has the managers %v", got)
	}
}
