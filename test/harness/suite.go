package harness

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/internal/binary"
	"operetta.dev/test/internal/testcache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Suite is shared by all tests of a package.
var Suite struct {
	ControlPlane *controlplane.ControlPlane
	Operetta     string // the binary under test
	Root         string // of the repository
	Admin        client.WithWatch
	// administrators is that of the Setup.
	administrators string
}

// EngineDefinitions is held by who changes the definitions of the engine's own kinds, which all tests of a package share, or writes those
// of the repository over them: a test about the definition of a newer engine would lose its fields.
var EngineDefinitions sync.Mutex

// parallel is how many tests run in parallel: more than there are processors, because they wait most of
// the time. With 8, two processors were idle for a quarter of it; 16 take as long as 12.
const parallel = "12"

// Setup is what the tests of one package need besides the control plane.
type Setup struct {
	// Packages returns the packages whose kinds are installed first.
	Packages func() []string
	// Administrators says why the operators of all tests act as administrators, or is "": then each has the roles that operetta rbac prints.
	Administrators string
}

// RunTests prepares the Suite, runs the tests of a package and ends the process.
func RunTests(m *testing.M, setup Setup) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("skipped, these tests need a control plane")
		os.Exit(0)
	}
	if !isSet("test.parallel") {
		_ = flag.Set("test.parallel", parallel)
	}
	code, err := setup.run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "preparing the tests:", err)
		code = 1
	}
	os.Exit(code)
}

func isSet(name string) bool {
	found := false
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// run prepares the Suite, runs the tests and cleans up.
func (setup Setup) run(m *testing.M) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	began := time.Now()
	dir, err := os.MkdirTemp("", "operetta-e2e-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if Suite.Root, err = filepath.Abs("../.."); err != nil {
		return 0, err
	}
	repository, err := testcache.Look(Suite.Root)
	if err != nil {
		return 0, err
	}
	Suite.Operetta, Suite.administrators = filepath.Join(dir, "operetta"), setup.Administrators
	if err := binary.To(ctx, Suite.Root, Suite.Operetta, "./cmd/operetta"); err != nil {
		return 0, err
	}
	built := time.Now()
	if Suite.ControlPlane, err = controlplane.Start(ctx, controlplane.Options{Audit: true, Nodes: 2}); err != nil {
		return 0, err
	}
	defer func() {
		if err := Suite.ControlPlane.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the control plane:", err)
		}
	}()
	if Suite.Admin, err = connect(Suite.ControlPlane.Kubeconfig()); err != nil {
		return 0, err
	}
	if setup.Packages != nil {
		// The garbage collector discovers new kinds only twice a minute, so they are installed first.
		if err := InstallCRDs(ctx, setup.Packages()...); err != nil {
			return 0, err
		}
	}
	fmt.Printf("built in %s, control plane up in %s\n", built.Sub(began).Round(time.Millisecond), time.Since(built).Round(time.Millisecond))
	return repository.Run(m)
}

// connect returns a client without a cache.
func connect(kubeconfig string) (client.WithWatch, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	ctrllog.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	return client.NewWithWatch(config, client.Options{Scheme: runtime.NewScheme()})
}

// InstallCRDs installs the CRDs of packages with kubectl, as an administrator does.
func InstallCRDs(ctx context.Context, dirs ...string) error {
	generated, err := exec.CommandContext(ctx, Suite.Operetta, append([]string{"crd"}, dirs...)...).Output()
	if err != nil {
		return fmt.Errorf("generating CRDs: %w%s", err, StderrOf(err))
	}
	// The folder is unique, because tests that run in parallel install CRDs at the same time.
	dir, err := os.MkdirTemp(filepath.Dir(Suite.Operetta), "crds-")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "crds.yaml")
	if err := os.WriteFile(file, generated, 0o600); err != nil {
		return err
	}
	if _, err := Kubectl(ctx, "apply", "--server-side", "-f", file); err != nil {
		return err
	}
	return waitForKinds(ctx, generated)
}

// waitForKinds waits until the API server serves the kinds of CustomResourceDefinitions, and discovery
// lists them. kubectl wait fails for a definition that is so new that it has no conditions.
func waitForKinds(ctx context.Context, definitions []byte) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(definitions), 4096)
	for {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := decoder.Decode(crd)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading CRDs: %w", err)
		}
		for _, v := range crd.Spec.Versions {
			if !v.Served {
				continue
			}
			kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
			if err := waitForKind(ctx, crd.Name, kind); err != nil {
				return fmt.Errorf("waiting for %s: %w", kind, err)
			}
		}
	}
}

func waitForKind(ctx context.Context, definition string, kind schema.GroupVersionKind) error {
	return wait.PollUntilContextTimeout(ctx, 40*time.Millisecond, Timeout, true, func(ctx context.Context) (bool, error) {
		u, err := GetOrNil(ctx, Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", definition))
		if err != nil || u == nil || Condition(u, "Established")["status"] != "True" {
			return false, err
		}
		_, err = Suite.Admin.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// PackageDir returns the folder of an operator package of the repository.
func PackageDir(name string) string { return filepath.Join(Suite.Root, "cue", name) }
