// Command krew builds the archives of a release with the plugin of kubectl, a bill of materials of each in the format of SPDX, and the manifest by
// which krew installs it:
//
//	go run ./config/krew -version v0.1.0 -base https://example.com/releases/v0.1.0
//
// All of them are the same, byte by byte, wherever the same source is built with the same version of Go.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"text/template"

	"golang.org/x/mod/semver"
)

//go:embed operetta.yaml.tmpl
var manifest string

// binary is the name by which kubectl finds the plugin.
const binary = "kubectl-operetta"

// A platform is one that there is an archive for.
type platform struct {
	OS, Arch string
	// URI is where the archive will be, and Digest its SHA-256 digest.
	URI, Digest string
}

// release is what is built.
type release struct {
	Version   string
	Platforms []platform

	base, out string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var r release
	platforms := ""
	flag.StringVar(&r.Version, "version", "", "version of the release, such as v0.1.0")
	flag.StringVar(&r.base, "base", "", "URL of the folder in which the archives will be")
	flag.StringVar(&r.out, "out", filepath.Join("bin", "krew"), "folder that gets the archives and the manifest")
	flag.StringVar(&platforms, "platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "platforms to build for")
	flag.Parse()
	if err := r.build(ctx, strings.Split(platforms, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "krew:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// build writes the archives and the manifest.
func (r *release) build(ctx context.Context, platforms []string) error {
	if semver.Canonical(r.Version) != r.Version || r.Version == "" {
		return fmt.Errorf("-version: %q is not a version, such as v0.1.0", r.Version)
	}
	if base, err := url.Parse(r.base); err != nil || base.Scheme != "https" || base.Host == "" {
		return fmt.Errorf("-base: %q is not a URL by https", r.base)
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, name := range platforms {
		p, err := r.archive(ctx, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.Platforms = append(r.Platforms, p)
	}
	var text bytes.Buffer
	if err := template.Must(template.New("manifest").Option("missingkey=error").Parse(manifest)).Execute(&text, r); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "operetta.yaml"), text.Bytes(), 0o644)
}

// archive builds the plugin for a platform, such as linux/amd64, and packs it.
func (r *release) archive(ctx context.Context, name string) (platform, error) {
	goos, arch, ok := strings.Cut(name, "/")
	if !ok {
		return platform{}, errors.New("write os/arch")
	}
	dir, err := os.MkdirTemp("", "operetta-krew-")
	if err != nil {
		return platform{}, err
	}
	defer os.RemoveAll(dir)
	built := filepath.Join(dir, binary)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+r.Version, "-o", built, "operetta.dev/cmd/operetta")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return platform{}, fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	packed, err := pack(map[string]string{binary: built, "LICENSE": "LICENSE"})
	if err != nil {
		return platform{}, err
	}
	file := fmt.Sprintf("operetta_%s_%s_%s.tar.gz", r.Version, goos, arch)
	sum := sha256.Sum256(packed)
	out := platform{OS: goos, Arch: arch, URI: strings.TrimSuffix(r.base, "/") + "/" + file, Digest: hex.EncodeToString(sum[:])}
	parts, err := r.billOf(built, out)
	if err != nil {
		return platform{}, err
	}
	return out, errors.Join(
		os.WriteFile(filepath.Join(r.out, file), packed, 0o644),
		os.WriteFile(filepath.Join(r.out, strings.TrimSuffix(file, ".tar.gz")+".spdx.json"), parts, 0o644),
	)
}

// pack returns an archive of files. It has no times and no users, so that it is the same each time.
func pack(files map[string]string) ([]byte, error) {
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	w := tar.NewWriter(zip)
	for _, name := range []string{binary, "LICENSE"} {
		data, err := os.ReadFile(files[name])
		if err != nil {
			return nil, err
		}
		mode := int64(0o644)
		if name == binary {
			mode = 0o755
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data)), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := w.Write(data); err != nil {
			return nil, err
		}
	}
	err := errors.Join(w.Close(), zip.Close())
	return b.Bytes(), err
}
