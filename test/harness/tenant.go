package harness

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Tenant is a user with the rights of one role in one namespace.
type Tenant struct {
	T *testing.T
	// User is the name that the API server knows the tenant by.
	User string
	// Namespace is the namespace of the role.
	Namespace string
	// Kubeconfig is a file with the tenant's credentials.
	Kubeconfig string
	// Client acts as the tenant, and reads from the API server itself.
	Client client.WithWatch
}

// AllVerbs are the verbs of a role that may do everything with a resource.
var AllVerbs = []any{"get", "list", "watch", "create", "patch", "update", "delete", "deletecollection"}

// Tenant creates a user with a role of some rules in a namespace. The name must be unique in the test.
func (s *Env) Tenant(name, namespace string, rules ...any) *Tenant {
	s.T.Helper()
	x := &Tenant{T: s.T, User: name + ":" + s.Namespace, Namespace: namespace}
	s.grant("tenant-"+name, namespace, x.User, rules...)
	var err error
	if x.Kubeconfig, err = Suite.ControlPlane.KubeconfigFor(x.User); err != nil {
		s.T.Fatal(err)
	}
	if x.Client, err = connect(x.Kubeconfig); err != nil {
		s.T.Fatal(err)
	}
	return x
}

// Create creates an object as the tenant; it has to be allowed.
func (x *Tenant) Create(u *unstructured.Unstructured) *unstructured.Unstructured {
	x.T.Helper()
	if err := x.Client.Create(x.T.Context(), u); err != nil {
		x.T.Fatalf("%s: %v", x.User, err)
	}
	return u
}

// Patch changes an object by a JSON merge patch as the tenant.
func (x *Tenant) Patch(u *unstructured.Unstructured, patch any) error {
	x.T.Helper()
	return x.Client.Patch(x.T.Context(), u.DeepCopy(), client.RawPatch(types.MergePatchType, Encode(x.T, patch)))
}

// PatchStatus changes the status of an object by a JSON merge patch as the tenant.
func (x *Tenant) PatchStatus(u *unstructured.Unstructured, patch any) error {
	x.T.Helper()
	return x.Client.Status().Patch(x.T.Context(), u.DeepCopy(), client.RawPatch(types.MergePatchType, Encode(x.T, patch)))
}

// Kubectl runs kubectl as the tenant in the namespace, and returns all that it prints.
func (x *Tenant) Kubectl(ctx context.Context, args ...string) (string, error) {
	x.T.Helper()
	all := append([]string{"--kubeconfig=" + x.Kubeconfig, "--namespace=" + x.Namespace}, args...)
	cmd := exec.CommandContext(ctx, Suite.ControlPlane.Kubectl(), all...)
	// kubectl caches discovery in the home folder.
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(Suite.Operetta))
	out, err := cmd.CombinedOutput()
	return string(out), err
}
