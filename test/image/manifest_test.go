package image

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// readStrictly reads the object of a kind in a file of the folder config.
func readStrictly(t *testing.T, into any, kind string, path ...string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{root, "config"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
		if !bytes.Contains(document, []byte("\nkind: "+kind+"\n")) {
			continue
		}
		if err := yaml.UnmarshalStrict(document, into); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("%s has no %s", filepath.Join(path...), kind)
}

// readManifest reads the service account and the Deployment of the engine, strictly.
func readManifest(t *testing.T) (account corev1.ServiceAccount, deployment appsv1.Deployment) {
	t.Helper()
	readStrictly(t, &account, "ServiceAccount", "install", "rbac.yaml")
	readStrictly(t, &deployment, "Deployment", "install", "manager.yaml")
	return account, deployment
}

func TestTheManifestRunsTheImageAsItIsMeant(t *testing.T) {
	account, deployment := readManifest(t)
	pod := deployment.Spec.Template.Spec
	if pod.ServiceAccountName != account.Name || deployment.Namespace != account.Namespace {
		t.Errorf("the Deployment runs as %s/%s, but the account is %s/%s", deployment.Namespace, pod.ServiceAccountName, account.Namespace, account.Name)
	}
	user, _, _ := strings.Cut(parseDockerfile(t).last("USER"), ":")
	if got := pod.SecurityContext.RunAsUser; got == nil || user != "65532" || *got != 65532 {
		t.Errorf("the manifest runs as user %v, the image as %s", got, user)
	}
	c := pod.Containers[0]
	if s := c.SecurityContext; !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
		t.Errorf("the container may do more than it needs: %v", s)
	}
	writable := map[string]bool{}
	for _, m := range c.VolumeMounts {
		writable[m.MountPath] = !m.ReadOnly
	}
	if !writable["/tmp"] {
		t.Error("nothing is mounted at /tmp, where CUE keeps what it unpacks")
	}
	if len(c.Args) < 2 || c.Args[0] != "run" || !strings.HasPrefix(c.Args[1], "/packages/") {
		t.Errorf("the container runs %q", c.Args)
	}
}

// manifestFlags are the flags that the manifest gives the engine.
func manifestFlags(t *testing.T) []string {
	t.Helper()
	_, deployment := readManifest(t)
	var out []string
	for _, arg := range deployment.Spec.Template.Spec.Containers[0].Args {
		if name, _, _ := strings.Cut(arg, "="); strings.HasPrefix(name, "--") {
			out = append(out, name)
		}
	}
	return out
}
