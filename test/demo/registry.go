package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"operetta.dev/test/internal/binary"
	"operetta.dev/test/internal/gotool"
	"operetta.dev/test/internal/screen"
)

// The package that goes through a registry, as operetta init makes it.
const (
	greeterName = "greeter"
	repository  = "example.com/operators"
	tag         = "v0.1.0"
	pullSecret  = "demo-registry"
)

// registryProgram is the registry, from the root of the repository.
var registryProgram = filepath.Join("bin", "registry")

// An ociRegistry is a registry that runs beside the demo, with a package in it.
type ociRegistry struct {
	server *child
	host   string
	// config is that of Docker, with the credentials.
	config []byte
	// digest is that of the package, and module the folder that it was pushed from.
	digest, module string
}

// startRegistry builds and starts a registry that serves nobody without credentials.
func (d *demo) startRegistry(ctx context.Context) error {
	st := d.screen.Start("start a registry")
	err := d.serveRegistry(ctx)
	st.End(err, "at "+d.registry.host)
	return err
}

func (d *demo) serveRegistry(ctx context.Context) (err error) {
	build := exec.Command("go", append(append([]string{"build"}, binary.Flags...), "-o", registryProgram, "./test/registrytest/cmd/registry")...)
	build.Env = append(os.Environ(), binary.Environment...)
	var complaint strings.Builder
	build.Stdout, build.Stderr = &complaint, &complaint
	if err := gotool.Run(ctx, build, 0); err != nil {
		return fmt.Errorf("building the registry: %w\n%s", err, &complaint)
	}
	const user = "demo"
	password := rand.Text()
	said := make(chan string, 1)
	cmd := exec.Command(registryProgram)
	cmd.Env = append(os.Environ(), "REGISTRY_USER="+user, "REGISTRY_PASSWORD="+password)
	d.registry.server, err = startCommand(func(line string) {
		select {
		case said <- line:
		default: // it says one line, and whatever comes then is of no use
		}
	}, cmd)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return errInterrupted
	case <-d.registry.server.done:
		return d.registry.server.died()
	case d.registry.host = <-said:
	}
	d.registry.config, err = json.Marshal(map[string]any{
		"auths": map[string]any{d.registry.host: map[string]any{"username": user, "password": password}},
	})
	return err
}

// push makes a package and pushes it.
func (d *demo) push(ctx context.Context) error {
	st := d.screen.Start("push a package to it")
	err := d.pushGreeter(ctx)
	st.End(err, "operetta init "+greeterName+" && operetta push ./"+greeterName+" "+d.reference())
	return err
}

// reference names the package in the registry.
func (d *demo) reference() string { return d.registry.host + "/" + repository + ":" + tag }

func (d *demo) pushGreeter(ctx context.Context) error {
	d.registry.module = filepath.Join(d.plane.Dir(), "operators")
	docker := filepath.Join(d.plane.Dir(), "docker")
	for _, dir := range []string{d.registry.module, docker} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(docker, "config.json"), d.registry.config, 0o600); err != nil {
		return err
	}
	operetta, err := filepath.Abs(binary.Path)
	if err != nil {
		return err
	}
	run := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, operetta, args...)
		cmd.Dir, cmd.Env = d.registry.module, append(os.Environ(), "DOCKER_CONFIG="+docker)
		return runCommand(cmd)
	}
	if _, err := run("init", greeterName); err != nil {
		return err
	}
	if err := declareSource(filepath.Join(d.registry.module, "cue.mod", "module.cue")); err != nil {
		return err
	}
	digest, err := run("push", "-q", "./"+greeterName, d.reference())
	d.registry.digest = strings.TrimSpace(string(digest))
	return err
}

// declareSource says in cue.mod/module.cue that the files of the module are those of its folder, as
// `cue mod edit --source self` does.
func declareSource(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, "source: kind: \"self\"\n"...), 0o600)
}

// applyPushed applies a Package that the operator has to fetch, with the credentials, and waits until it is served.
func (d *demo) applyPushed(ctx context.Context) error {
	st := d.screen.Start("apply a Package that names it")
	begin := time.Now()
	err := errors.Join(d.allow(ctx, filepath.Join(d.registry.module, greeterName)), d.putObject(ctx, map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
		"metadata": map[string]any{"name": pullSecret, "namespace": operatorNamespace},
		"data":     map[string]any{".dockerconfigjson": d.registry.config}, // bytes become base64
	}))
	if err == nil {
		err = d.putObject(ctx, map[string]any{
			"apiVersion": "operetta.dev/v1alpha1", "kind": "Package", "metadata": map[string]any{"name": greeterName},
			"spec": map[string]any{"source": map[string]any{"oci": map[string]any{
				"reference": d.reference(), "digest": d.registry.digest, "path": greeterName, "pullSecret": pullSecret,
			}}},
		})
	}
	if err == nil {
		err = d.waitServed(ctx, greeterName)
	}
	st.End(err, fmt.Sprintf("Package %s at %s is served after %s", greeterName, short(d.registry.digest), screen.Seconds(time.Since(begin))))
	return err
}

// greet applies a resource of the package from the registry, and draws it until it is Ready.
func (d *demo) greet(ctx context.Context) (err error) {
	sample := filepath.Join(d.registry.module, greeterName, "sample.yaml")
	st := d.screen.Start("apply a resource of it")
	if d.greeting, err = d.cluster.apply(ctx, sample); err == nil {
		err = d.drawUntilReady(ctx, d.greeting)
	}
	st.End(err, "kubectl apply -f "+greeterName+"/sample.yaml")
	d.screen.Keep()
	return err
}

// endRegistry takes the registry away. What was fetched is kept in the cluster.
func (d *demo) endRegistry(ctx context.Context) error {
	st := d.screen.Start("take the registry away")
	d.registry.server.end()
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", d.registry.host)
	if err == nil {
		_ = connection.Close()
		err = fmt.Errorf("something still listens at %s", d.registry.host)
		st.End(err, "")
		return err
	}
	st.End(nil, "nothing listens at "+d.registry.host)
	return nil
}

// changeGreeting changes the resource of the package from the registry, which is gone, and so is the process that
// has fetched the package.
func (d *demo) changeGreeting(ctx context.Context) error {
	st := d.screen.Start("scale " + d.greeting.subject() + ", without the registry")
	patch := `{"spec":{"replicas":3}}`
	err := d.patchUntilReady(ctx, d.greeting, patch)
	var now packageObject
	if err == nil {
		err = d.cluster.get(ctx, packagePath(greeterName), &now)
	}
	st.End(err, "kubectl patch "+d.greeting.subject()+" -p '"+patch+"'; the Package says: "+now.notReady())
	return err
}
