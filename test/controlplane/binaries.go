package controlplane

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// AssetsEnv names a folder with programs to use instead of building them, as
// other Kubernetes test environments do. Only what is in the folder is taken from
// it; usually that is etcd, kube-apiserver and kubectl.
const AssetsEnv = "KUBEBUILDER_ASSETS"

// Binaries are the paths of the programs that a control plane consists of.
type Binaries struct {
	Etcd              string
	APIServer         string
	ControllerManager string
	Scheduler         string
	Kwok              string
	// Kubectl is not part of the control plane; it is there for tests and people.
	Kubectl string

	// keeper owns the processes; stages tells kwok how nodes and pods proceed.
	keeper, stages string
}

// A Builder builds the programs. The zero value is ready to use.
type Builder struct {
	// Out is told how the build goes; it may be nil.
	Out io.Writer
	// Niceness is by how much the compilers yield the processors to others, as of nice.
	Niceness int
}

// Build returns the programs, building those that are not in the cache yet,
// which takes minutes the first time. The cache is operetta/controlplane in the
// user's cache folder; a change of a version or flag leads to a new folder there.
// How the build goes is told to out, which may be nil.
func Build(ctx context.Context, out io.Writer) (Binaries, error) { return Builder{Out: out}.Build(ctx) }

// units returns what has to be there, without the programs of the folder of AssetsEnv, whose paths are added to paths.
func units(paths map[string]string) []unit {
	return []unit{keeperUnit(), programsUnit().withoutExisting(os.Getenv(AssetsEnv), paths)}
}

// Built reports whether everything is there, so that Build returns at once.
func Built() bool {
	cache, err := cacheDir()
	if err != nil {
		return false // Build says why
	}
	for _, u := range units(map[string]string{}) {
		if key, err := u.key(); err != nil || !isDir(filepath.Join(cache, key)) {
			return false
		}
	}
	return true
}

// Build returns the programs, as the function of this name does.
func (b Builder) Build(ctx context.Context) (Binaries, error) {
	cache, err := cacheDir()
	if err != nil {
		return Binaries{}, err
	}
	p := newProgress(b.Out)
	p.niceness = b.Niceness
	paths := map[string]string{}
	for _, u := range units(paths) {
		dir, err := u.ensure(ctx, cache, p)
		if err != nil {
			return Binaries{}, err
		}
		for _, t := range u.targets {
			paths[t.program] = filepath.Join(dir, t.program)
		}
	}
	return Binaries{
		Etcd:              paths["etcd"],
		APIServer:         paths["kube-apiserver"],
		ControllerManager: paths["kube-controller-manager"],
		Scheduler:         paths["kube-scheduler"],
		Kwok:              paths[kwokProgram],
		Kubectl:           paths["kubectl"],
		keeper:            paths["keeper"],
		stages:            filepath.Join(filepath.Dir(paths[kwokProgram]), stagesFile),
	}, nil
}

// cacheDir is where programs and port locks are kept between runs.
func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache folder (set XDG_CACHE_HOME or HOME): %w", err)
	}
	return filepath.Join(dir, "operetta", "controlplane"), nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
