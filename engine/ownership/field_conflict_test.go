package ownership_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/ownership"
	"sigs.k8s.io/yaml"
)

func fromYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return u
}

const fightManifest = `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ClusterIP, ports: [{name: http, port: 80}], externalIPs: [192.0.2.1]}}`

func TestWhoHasTakenAFieldIsNamed(t *testing.T) {
	t.Parallel()
	const (
		ports = `f:ports: {'k:{"port":80,"protocol":"TCP"}': {".": {}, f:name: {}, f:port: {}}}`
		typed = `f:type: {}`
		ips   = `f:externalIPs: {}`
	)
	for name, row := range map[string]struct {
		reason, ours, theirs string
		field, manager       string
	}{
		"nobody":                 {"nothing was changed", typed + "," + ports + "," + ips, "f:selector: {}", "", ""},
		"a plain field":          {"who has it counts, not who wrote last", ports + "," + ips, typed, "spec.type", "rival"},
		"a list as a whole":      {"it is owned as a whole", typed + "," + ports, ips, "spec.externalIPs", "rival"},
		"a field in an item":     {"the path has the key of the item", typed + "," + ips + `, f:ports: {'k:{"port":80,"protocol":"TCP"}': {".": {}, f:port: {}}}`, `f:ports: {'k:{"port":80,"protocol":"TCP"}': {f:name: {}}}`, `spec.ports[port=80,protocol="TCP"].name`, "rival"},
		"a field that was taken": {"nobody owns what was removed: the last one who wrote is named", ports + "," + ips, "f:selector: {}", "spec.type", "late"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := fromYAML(t, `{apiVersion: v1, kind: Service, metadata: {name: a, managedFields: [
{manager: other, operation: Update, time: "2026-01-01T00:00:00Z", fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {f:spec: {f:sessionAffinity: {}}}},
{manager: operetta, operation: Apply, time: "2026-01-01T00:00:01Z", fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {f:spec: {`+row.ours+`}}},
{manager: rival, operation: Update, time: "2026-01-01T00:00:02Z", fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {f:spec: {`+row.theirs+`}}},
{manager: late, operation: Update, time: "2026-01-01T00:00:03Z", fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {f:spec: {f:internalTrafficPolicy: {}}}},
{manager: timeless, operation: Update, fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {f:spec: {f:externalName: {}}}},
{manager: controller, operation: Update, subresource: status, time: "2026-01-01T00:00:04Z", fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {f:status: {}}}]}}`)
			field, manager := ownership.LostField(ownership.Desired{Manifest: fromYAML(t, fightManifest)}, live)
			if field != row.field || manager != row.manager {
				t.Errorf("%s: got %q by %q, want %q by %q", row.reason, field, manager, row.field, row.manager)
			}
		})
	}
}

func TestAFieldThatIsRenderedDifferentlyIsNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		fightManifest: "",
		`{apiVersion: v1, kind: Service, metadata: {name: a, labels: {a: b}}, spec: {clusterIP: 10.0.0.1, type: ClusterIP, ports: [{name: http, port: 80}], externalIPs: [192.0.2.1]}}`: "",
		`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: NodePort, ports: [{name: http, port: 80}], externalIPs: [192.0.2.1]}}`:                                       "spec.type",
		`{apiVersion: v1, kind: Service, metadata: {name: a}}`: "spec.externalIPs",
	} {
		if got := ownership.DifferingField(ownership.Desired{Manifest: fromYAML(t, fightManifest)}, fromYAML(t, text)); got != want {
			t.Errorf("got %q, want %q, for %s", got, want, text)
		}
	}
}
