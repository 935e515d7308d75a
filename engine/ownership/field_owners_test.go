package ownership_test

import (
	"testing"

	"operetta.dev/engine/fieldpath"
	"operetta.dev/engine/ownership"
)

func TestTheShareInAFieldIsWhatAManagerOwnsOfIt(t *testing.T) {
	t.Parallel()
	const object = `{apiVersion: v1, kind: Service, metadata: {name: a, finalizers: [first, second]},
spec: {ports: [{name: http, port: 80}, {name: https, port: 443}], args: [one, two], selector: {app: a}}`
	const http = `'k:{"port":80}'`
	for name, row := range map[string]struct {
		reason, path, fields string
		want                 ownership.Share
	}{
		"a field that is not there": {"who owned it has nothing there", "spec.type", "f:spec: {f:type: {}}", ownership.NoShare},
		"a field that is there":     {"it has it", "spec.selector.app", "f:spec: {f:selector: {f:app: {}}}", ownership.SharesField},
		"the object itself":         {"it has something of it", "", "f:spec: {f:type: {}}", ownership.SharesPart},
		"a field of another name":   {"somebody else has it", "spec.selector.app", "f:spec: {f:selector: {f:tier: {}}}", ownership.NoShare},
		"a part":                    {"something below it", "spec.selector", "f:spec: {f:selector: {f:app: {}}}", ownership.SharesPart},
		"the whole":                 {"what is around it, as one", "spec.selector.app", "f:spec: {f:selector: {}}", ownership.SharesWhole},
		"an item by its key":        {"the key tells which one it is", "spec.ports[0].name", "f:spec: {f:ports: {" + http + ": {f:name: {}}}}", ownership.SharesField},
		"another item":              {"its key is another one", "spec.ports[1].name", "f:spec: {f:ports: {" + http + ": {f:name: {}}}}", ownership.NoShare},
		"an item of a set":          {"its value tells which one it is", "metadata.finalizers[1]", `f:metadata: {f:finalizers: {'v:"second"': {}}}`, ownership.SharesField},
		"another item of a set":     {"its value is another one", "metadata.finalizers[0]", `f:metadata: {f:finalizers: {'v:"second"': {}}}`, ownership.NoShare},
		"a text, by a key":          {"it has no keys", "spec.args[0]", "f:spec: {f:args: {" + http + ": {}}}", ownership.NoShare},
		"an item by its place":      {"there is nothing else to tell it by", "spec.args[1]", `f:spec: {f:args: {'i:1': {}}}`, ownership.SharesField},
		"another place":             {"there is nothing else to tell it by", "spec.args[0]", `f:spec: {f:args: {'i:1': {}}}`, ownership.NoShare},
		"a list as a whole":         {"its items are no fields of their own", "spec.args[0]", "f:spec: {f:args: {}}", ownership.SharesWhole},
		"an item that is not there": {"there is none", "spec.args[7]", `f:spec: {f:args: {'i:1': {}}}`, ownership.NoShare},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := fromYAML(t, object+`}`)
			managed := fromYAML(t, `{apiVersion: v1, kind: Service, metadata: {name: a, managedFields: [
{manager: m, operation: Apply, fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {`+row.fields+`}}]}}`)
			got := ownership.ShareOf(ownership.FieldSets(managed)[0], live.Object, fieldpath.Parse(row.path))
			if got != row.want {
				t.Errorf("%s: the share is %s, want %s", row.reason, got, row.want)
			}
		})
	}
}
