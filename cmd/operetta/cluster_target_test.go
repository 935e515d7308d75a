package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"
)

// kubeconfig is a file with two contexts, of which that of production is the current one.
const kubeconfig = `
apiVersion: v1
kind: Config
current-context: prod
clusters:
- {name: far, cluster: {server: "https://203.0.113.7:6443"}}
- {name: near, cluster: {server: "https://127.0.0.1:6443"}}
contexts:
- {name: prod, context: {cluster: far, user: alice}}
- {name: mine, context: {cluster: near, user: alice}}
- {name: kind-far, context: {cluster: far, user: alice}}
users:
- {name: alice, user: {token: none}}
`

func TestClusterThatNobodyNamedIsNotActedOn(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, "config")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		reason string
		flags  clusterFlags
		env    string
	}{
		"Named by --context":    {"who names it means it", clusterFlags{kubeconfig: file, context: "prod"}, ""},
		"Named by --kubeconfig": {"the file is named, and with it its current context", clusterFlags{kubeconfig: file}, ""},
		"Named by KUBECONFIG":   {"somebody has exported it", clusterFlags{}, file},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", c.env)
			chosen, err := findTarget(c.flags)
			if err != nil {
				t.Fatal(err)
			}
			if err := chosen.confirm(t.Context(), streams{}); err != nil {
				t.Errorf("%s: %v", c.reason, err)
			}
			if chosen.context != "prod" || chosen.server() != "https://203.0.113.7:6443" {
				t.Errorf("it is %q at %s", chosen.context, chosen.server())
			}
		})
	}
	for name, c := range map[string]struct {
		reason        string
		context, host string
		local         bool
	}{
		"Far":              {"others may work on it", "prod", "https://203.0.113.7:6443", false},
		"Loopback":         {"only this machine reaches it", "prod", "https://127.0.0.53:6443", true},
		"Loopback of IPv6": {"the same", "prod", "https://[::1]:6443", true},
		"Name of loopback": {"the same", "prod", "https://localhost:6443", true},
		"Any address":      {"so do tools for clusters in containers", "prod", "https://0.0.0.0:6443", true},
		"No scheme":        {"a kubeconfig may leave it out", "prod", "localhost", true},
		"Kind":             {"the tool names its contexts so", "kind-dev", "https://172.18.0.2:6443", true},
		"Minikube":         {"in a virtual machine of its own", "minikube", "https://192.168.49.2:8443", true},
		"K3d":              {"the tool names its contexts so", "k3d-dev", "https://0.0.0.0:6443", true},
		"Like a local one": {"it only contains such a name", "prod-kind-dev", "https://203.0.113.7", false},
		"Name like one":    {"a host in a domain is somewhere", "prod", "https://localhost.example.com", false},
	} {
		chosen := target{config: &rest.Config{Host: c.host}, context: c.context}
		err := chosen.confirm(t.Context(), streams{in: strings.NewReader("y\n"), err: &bytes.Buffer{}})
		if (err == nil) != c.local {
			t.Errorf("%s: %s: %v", name, c.reason, err)
		}
		if err != nil && !strings.Contains(err.Error(), "--context "+c.context) {
			t.Errorf("%s: it is not said what to do: %v", name, err)
		}
	}
}

func TestAnAnswerIsAwaitedAsLongAsTheProcessRuns(t *testing.T) {
	t.Parallel()
	if line, err := readLine(t.Context(), strings.NewReader("yes\nno\n")); line != "yes\n" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	never, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	if _, err := readLine(ended, never); err == nil {
		t.Error("it waits although the process ends")
	}
}

func TestTheLogBeginsWithTheClusterAndTheUser(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/apis/authentication.k8s.io/v1/selfsubjectreviews", func(w http.ResponseWriter, _ *http.Request) {
		review := authenticationv1.SelfSubjectReview{}
		review.Status.UserInfo.Username = "alice"
		respond(t, w, "", review)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	old := httptest.NewServer(http.NotFoundHandler())
	defer old.Close()
	for name, c := range map[string]struct {
		chosen target
		want   []string
	}{
		"a context":        {target{config: &rest.Config{Host: server.URL}, context: "dev"}, []string{`"context"="dev"`, server.URL, `"user"="alice"`}},
		"within a cluster": {target{config: &rest.Config{Host: server.URL}}, []string{"runs in the cluster", `"user"="alice"`}},
		"not served":       {target{config: &rest.Config{Host: old.URL}, context: "dev"}, []string{`"context"="dev"`, `"user"="not known`}},
		"a password":       {target{config: &rest.Config{Host: "http://a:secret@127.0.0.1:1"}, context: "dev"}, []string{"a:xxxxx@127"}},
	} {
		var said string
		c.chosen.logTarget(t.Context(), funcr.New(func(_, args string) { said += args }, funcr.Options{}))
		for _, part := range c.want {
			if !strings.Contains(said, part) {
				t.Errorf("%s: %q is not in %s", name, part, said)
			}
		}
		if strings.Contains(said, "secret") {
			t.Errorf("%s: a password is in the log: %s", name, said)
		}
	}
}
