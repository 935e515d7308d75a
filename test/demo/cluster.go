package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"operetta.dev/test/internal/binary"
)

// A cluster is asked through `kubectl proxy`, so that one process knows the
// credentials, and a question costs a request and not a process.
type cluster struct {
	kubectl, kubeconfig string
	// flags are those of every kubectl: which cluster, and no cache in the user's home.
	flags  []string
	socket string
	client *http.Client
	kinds  map[kindKey]kindInfo
}

type kindKey struct{ apiVersion, kind string }

// kindInfo is what discovery returns for a kind.
type kindInfo struct {
	plural     string
	namespaced bool
	scalable   bool
}

// errAbsent is the error for an object that does not exist.
var errAbsent = errors.New("it does not exist")

// connect returns a cluster that is asked through a socket in a private folder, which
// lets nobody else on the machine in, as a port would. Somebody has to run
// kubectl with the arguments of proxy; the cluster may be asked before the socket is there.
func connect(kubectl, kubeconfig, dir string) *cluster {
	socket := filepath.Join(dir, "proxy")
	var dialer net.Dialer
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", socket)
	}}
	return &cluster{
		kubectl: kubectl, kubeconfig: kubeconfig,
		flags:  []string{"--kubeconfig", kubeconfig, "--cache-dir", filepath.Join(dir, "kubectl")},
		socket: socket,
		client: &http.Client{Transport: transport, Timeout: 5 * time.Second},
		kinds:  map[kindKey]kindInfo{},
	}
}

// proxy returns the arguments of the kubectl that answers at the socket.
func (c *cluster) proxy() []string {
	return slices.Concat(c.flags, []string{"proxy", "--unix-socket", c.socket})
}

// run runs kubectl.
func (c *cluster) run(ctx context.Context, args ...string) ([]byte, error) {
	return runTool(ctx, c.kubectl, slices.Concat(c.flags, args)...)
}

// An API server answers that there are too many requests for a second or two after a definition has changed, until it can store
// such resources again. It is asked again that often, after that long.
const (
	busyTries = 20
	busyPause = 500 * time.Millisecond
)

// get reads a path of the API.
func (c *cluster) get(ctx context.Context, at string, into any) error {
	for tries := 1; ; tries++ {
		code, body, err := c.ask(ctx, at)
		switch {
		case err != nil:
			return err
		case code == http.StatusNotFound:
			return errAbsent
		case code == http.StatusOK:
			return json.Unmarshal(body, into)
		case code != http.StatusTooManyRequests || tries == busyTries:
			return fmt.Errorf("the API server answered %d %s for %s", code, http.StatusText(code), at)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(busyPause):
		}
	}
}

// ask sends one request, and returns the status code and the body of the answer.
func (c *cluster) ask(ctx context.Context, at string) (int, []byte, error) {
	u := url.URL{Scheme: "http", Host: "localhost", Path: at}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, nil, err
	}
	answer, err := c.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, body, err
}

// kind looks a kind up; errAbsent when the API server does not serve it.
func (c *cluster) kind(ctx context.Context, k kindKey) (kindInfo, error) {
	if info, ok := c.kinds[k]; ok {
		return info, nil
	}
	var list struct {
		Resources []struct {
			Name       string `json:"name"`
			Kind       string `json:"kind"`
			Namespaced bool   `json:"namespaced"`
		} `json:"resources"`
	}
	if err := c.get(ctx, groupPath(k.apiVersion), &list); err != nil {
		return kindInfo{}, err
	}
	var info kindInfo
	for _, r := range list.Resources {
		if r.Kind == k.kind && !strings.Contains(r.Name, "/") {
			info.plural, info.namespaced = r.Name, r.Namespaced
		}
	}
	if info.plural == "" {
		return kindInfo{}, errAbsent
	}
	for _, r := range list.Resources {
		info.scalable = info.scalable || r.Name == info.plural+"/scale"
	}
	c.kinds[k] = info
	return info, nil
}

// read reads one object.
func (c *cluster) read(ctx context.Context, k kindKey, namespace, name string, into any) error {
	info, err := c.kind(ctx, k)
	if err != nil {
		return err
	}
	at := groupPath(k.apiVersion)
	if info.namespaced {
		at = path.Join(at, "namespaces", namespace)
	}
	return c.get(ctx, path.Join(at, info.plural, name), into)
}

func groupPath(apiVersion string) string {
	if strings.Contains(apiVersion, "/") {
		return path.Join("/apis", apiVersion)
	}
	return path.Join("/api", apiVersion)
}

// apply applies a file and returns the resource as kubectl prints it.
func (c *cluster) apply(ctx context.Context, file string) (resource, error) {
	var r resource
	out, err := c.run(ctx, "apply", "-f", file, "-o", "json")
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	if r.Metadata.Name == "" {
		return r, fmt.Errorf("%s: it has to hold one custom resource", file)
	}
	return r, nil
}

// reconciles is the beginning of what follows a tree, which may be coloured.
var reconciles = regexp.MustCompile(`^(\x1b\[[0-9;]*m)?reconciles: `)

// explain returns the tree that operetta explain draws of a resource. It errors if there is none.
func (c *cluster) explain(ctx context.Context, r resource, coloured bool) ([]string, error) {
	command := exec.CommandContext(ctx, binary.Path, "explain", strings.ToLower(r.Kind)+"/"+r.Metadata.Name,
		"--namespace", r.Metadata.Namespace, "--kubeconfig", c.kubeconfig)
	if command.Env = os.Environ(); coloured {
		command.Env = append(command.Env, "CLICOLOR_FORCE=1")
	}
	out, err := runCommand(command)
	if len(out) == 0 {
		return nil, err
	}
	// It fails with a picture as well: of what is not ready. Below the tree it says that it knows no reconciles and lists
	// the last writes instead, since no operator is named to it.
	picture := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	end := slices.IndexFunc(picture, func(line string) bool { return reconciles.MatchString(line) })
	if end >= 0 {
		picture = picture[:end]
	}
	return picture, nil
}

// sampleKind returns the kind of the one object that a file holds, without asking for
// its type, which the cluster may not know yet.
func (c *cluster) sampleKind(ctx context.Context, file string) (kindKey, error) {
	out, err := c.run(ctx, "patch", "--local", "-f", file, "--type=merge", "-p", "{}", "-o", "json")
	if err != nil {
		return kindKey{}, err
	}
	var r resource
	if err := json.Unmarshal(out, &r); err != nil {
		return kindKey{}, fmt.Errorf("%s: %w", file, err)
	}
	return kindKey{r.APIVersion, r.Kind}, nil
}

// A resource is a custom resource, as far as the demo reads it.
type resource struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name            string `json:"name"`
		Namespace       string `json:"namespace"`
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
		Generation      int64  `json:"generation"`
	} `json:"metadata"`
	Status struct {
		ObservedGeneration int64       `json:"observedGeneration"`
		Phase              string      `json:"phase"`
		ComponentsReady    string      `json:"componentsReady"`
		Components         []component `json:"components"`
		// Package names the version that the resource was reconciled with.
		Package struct {
			Digest string `json:"digest"`
		} `json:"package"`
		Inventory []group `json:"inventory"`
	} `json:"status"`
}

// component is one of status.components.
type component struct {
	Name    string `json:"name"`
	State   string `json:"state"`
	Message string `json:"message"`
}

// group is one of status.inventory.
type group struct {
	Component string   `json:"component"`
	DependsOn []string `json:"dependsOn"`
	Objects   []entry  `json:"objects"`
}

// entry is an object of the inventory. Its namespace is left out when it is that of
// the custom resource.
type entry struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	// ClusterScoped is true if the object has no namespace.
	ClusterScoped bool `json:"clusterScoped"`
}

// subject names the resource.
func (r resource) subject() string { return r.Kind + "/" + r.Metadata.Name }

// ready reports whether the resource is Ready for its current generation.
func (r resource) ready() bool {
	return r.Status.Phase == "Ready" && r.Status.ObservedGeneration == r.Metadata.Generation
}
