package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// The definition is created by a manager of its own, so that of two operators only one makes it, and is applied from then on, so that it loses fields that others
// have not added.
func TestADefinitionLosesWhatItsPackageDoesNotHaveAnyMore(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	body := "#Spec: {old?: string, text: string | *\"a\"}\n" + `components: web: objects: config: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web-\(cr.metadata.name)", data: text: cr.spec.text}` + "\n"
	p := newTestPackage(t, "lesser", body)
	s.StartOperator(p.Dir)
	definition := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things.lesser.example.com")
	fields := func(u *unstructured.Unstructured) map[string]any {
		versions, _ := harness.Field(u, "spec", "versions").([]any)
		first, _ := versions[0].(map[string]any)
		out, _, _ := unstructured.NestedMap(first, "schema", "openAPIV3Schema", "properties", "spec", "properties")
		return out
	}
	s.ExpectObject(definition, "to have both fields, and one owner", func(u *unstructured.Unstructured) error {
		if fields(u)["old"] == nil {
			return harness.ErrNotYet
		}
		return ownedByApplyAlone(u)
	})
	harness.WriteFile(t, filepath.Join(p.Dir, p.Name+".cue"), strings.ReplaceAll(harness.TestPackageHead+strings.Replace(body, "old?: string, ", "", 1), "NAME", p.Name))
	s.ExpectObject(definition, "to have one field", func(u *unstructured.Unstructured) error {
		if got := fields(u); got["old"] != nil || got["text"] == nil {
			return fmt.Errorf("it has %v", got)
		}
		return ownedByApplyAlone(u)
	})
}

// ownedByApplyAlone errors if an object has fields that the operator owns otherwise than by an apply.
func ownedByApplyAlone(u *unstructured.Unstructured) error {
	applied := false
	for _, m := range u.GetManagedFields() {
		if m.Manager != "operetta" {
			continue
		}
		if m.Operation != "Apply" {
			return fmt.Errorf("%s %s owns fields", m.Manager, m.Operation)
		}
		applied = true
	}
	if !applied {
		return errors.New("the operator owns nothing")
	}
	return nil
}
