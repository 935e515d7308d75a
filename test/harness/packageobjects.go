package harness

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/object"
	"operetta.dev/engine/source"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// packageAPI is the API version of Packages.
const packageAPI = "operetta.dev/v1alpha1"

// PackageObject is a TestPackage that is an object of the cluster.
type PackageObject struct {
	*TestPackage

	// HasAccount says that the operator acts as an account for it, whose rights the test grants.
	HasAccount bool

	env *Env
}

// NewPackageObject returns a TestPackage that is an object of the cluster, which it does not create.
func (s *Env) NewPackageObject(name string) *PackageObject {
	s.T.Helper()
	p := &TestPackage{T: s.T, Name: name}
	s.served = append(s.served, p)
	return &PackageObject{TestPackage: p, env: s}
}

// Text returns the text of the package with a body, in which NAME stands for the name of the package. However the text gets into the
// cluster, the operators of the test have the roles for it from then on: an administrator applies those before the package.
func (p *PackageObject) Text(body string) string {
	p.T.Helper()
	text := strings.ReplaceAll(TestPackageHead+body, "NAME", p.Name)
	p.grant(map[string]string{p.Name + ".cue": text})
	return text
}

// Inline returns the Package with the files in its spec.
func (p *PackageObject) Inline(files map[string]any) *unstructured.Unstructured {
	return p.Object(map[string]any{"source": map[string]any{"inline": files}})
}

// InlineBody is Inline with one file of TestPackageHead and a body.
func (p *PackageObject) InlineBody(body string) *unstructured.Unstructured {
	return p.Inline(map[string]any{p.Name + ".cue": p.Text(body)})
}

// Object returns the Package with a spec.
func (p *PackageObject) Object(spec map[string]any) *unstructured.Unstructured {
	u := Object(packageAPI, "Package", "", p.Name)
	u.SetLabels(map[string]string{"test": p.env.Namespace})
	u.Object["spec"] = spec
	return u
}

// Ref returns the Package with only its identity.
func (p *PackageObject) Ref() *unstructured.Unstructured {
	return Object(packageAPI, "Package", "", p.Name)
}

// Apply creates the Package, or changes its spec, once the operators of the test have the roles for it.
func (p *PackageObject) Apply(u *unstructured.Unstructured) {
	p.T.Helper()
	if files, inline, _ := unstructured.NestedStringMap(u.Object, "spec", "source", "inline"); inline {
		p.grant(files)
	}
	if account, acts, _ := unstructured.NestedString(u.Object, "spec", "serviceAccountName"); acts {
		p.env.actsAs(object.Account{Namespace: p.env.Namespace, Name: account})
	}
	if secret, _, _ := unstructured.NestedString(u.Object, "spec", "source", "oci", "pullSecret"); secret != "" {
		p.env.readsPullSecret(secret)
	}
	present, err := GetOrNil(p.T.Context(), p.Ref())
	if err != nil {
		p.T.Fatal(err)
	}
	if present != nil {
		present.Object["spec"] = u.Object["spec"]
		if err := Suite.Admin.Update(p.T.Context(), present); err != nil {
			p.T.Fatal(err)
		}
		return
	}
	p.env.Create(u.DeepCopy())
	p.T.Cleanup(func() { RemoveForGood(p.T, p.Ref()) })
}

// grant gives the operators of the test the roles of the package with some files, unless they act as an account for it.
func (p *PackageObject) grant(files map[string]string) {
	p.T.Helper()
	if p.HasAccount {
		return
	}
	snapshot, err := source.Loader{}.Files(p.Name, p.Name, ".", files)
	var found []examined
	if err == nil {
		found, err = examine(snapshot)
	}
	if err != nil {
		p.T.Logf("no roles for Package %s: %v", p.Name, err)
		return
	}
	p.env.serves(found)
}

// RemoveForGood deletes an object whatever its finalizers: the operator of the test has ended.
func RemoveForGood(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // the context of a test ends before its cleanups
	present, err := GetOrNil(ctx, u)
	if err != nil || present == nil {
		return
	}
	present.SetFinalizers(nil)
	_ = Suite.Admin.Update(ctx, present)
	_ = Suite.Admin.Delete(ctx, u)
}

// Revisions returns the PackageRevisions of the Package.
func (p *PackageObject) Revisions() []*unstructured.Unstructured {
	p.T.Helper()
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.FromAPIVersionAndKind(packageAPI, "PackageRevisionList"))
	if err := Suite.Admin.List(p.T.Context(), l, client.MatchingLabels{"operetta.dev/package": p.Name}); err != nil {
		p.T.Fatal(err)
	}
	out := make([]*unstructured.Unstructured, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}

// StartPackageOperator starts an operator of the Packages of the test.
func (s *Env) StartPackageOperator(args ...string) *Operator {
	s.T.Helper()
	return s.StartOperator(append([]string{"--packages-from-cluster", "--package-selector", "test=" + s.Namespace}, args...)...)
}

// Expect waits until conditions of the Package are as wanted: type, status, reason, and parts of the message.
func (p *PackageObject) Expect(kind, status, reason string, parts ...string) *unstructured.Unstructured {
	p.T.Helper()
	return p.env.ExpectObject(p.Ref(), fmt.Sprintf("to have %s=%s %s", kind, status, reason), func(u *unstructured.Unstructured) error {
		return HasCondition(u, kind, status, reason, parts...)
	})
}

// HasCondition returns nil if an object has a condition that is about its present generation.
func HasCondition(u *unstructured.Unstructured, kind, status, reason string, parts ...string) error {
	c := Condition(u, kind)
	text, _ := c["message"].(string)
	if c["status"] != status || c["reason"] != reason || c["observedGeneration"] != u.GetGeneration() || !ContainsAll(text, parts) {
		return fmt.Errorf("%s is %v, of generation %d", kind, c, u.GetGeneration())
	}
	return nil
}
