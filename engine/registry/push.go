package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cuelabs.dev/go/oci/ociregistry"
	"cuelabs.dev/go/oci/ociregistry/ociref"
	"cuelang.org/go/mod/modconfig"
	"cuelang.org/go/mod/modfile"
	"cuelang.org/go/mod/modregistry"
	"cuelang.org/go/mod/module"
	"cuelang.org/go/mod/modzip"
	"golang.org/x/mod/semver"
)

// A Package is a module as it is pushed: what cue mod publish makes of it, byte by byte.
type Package struct {
	// Version is the module with its version.
	Version module.Version
	// Zip has its files.
	Zip []byte
	// Metadata says which commit it is from, or is nil.
	Metadata *modregistry.Metadata
}

// Files returns the CUE files of the module, as those who fetch it get them. It errors with an Error if they
// would not take it.
func (p *Package) Files() (fs.FS, error) {
	files, _, err := unpack(p.Zip, p.Version.Version())
	if len(p.Zip) > maxBlob {
		err = errorf(TooLarge, "the zip file of the module has %d bytes, and at most %d are fetched", len(p.Zip), maxBlob)
	}
	return files, err
}

// Pack packs the module in a folder, as cue mod publish does. It errors if the version is not one of the module,
// if the module does not say what its source is, and if that is git, and not everything is committed.
func Pack(ctx context.Context, root, version string) (*Package, error) {
	name := filepath.Join(root, filepath.FromSlash(moduleFile))
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s does not exist: only a module can be pushed; operetta init makes one", name)
	}
	if err != nil {
		return nil, err
	}
	declared, err := modfile.Parse(data, name)
	if err != nil {
		return nil, err
	}
	if semver.Canonical(version) != version || version == "" {
		return nil, fmt.Errorf("%q is not the version of a module: the tag has to be one, such as v0.1.2", version)
	}
	if major := declared.MajorVersion(); semver.Major(version) != major {
		return nil, fmt.Errorf("version %s is not one of %s, whose versions are %s.N.N", version, declared.QualifiedModule(), major)
	}
	if declared.Source == nil {
		return nil, fmt.Errorf("%s has no source; cue mod edit --source self, or git, writes it", name)
	}
	v, err := module.NewVersion(declared.QualifiedModule(), version)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	switch declared.Source.Kind {
	case "self":
		err := modzip.CreateFromDir(&b, v, root)
		return &Package{Version: v, Zip: b.Bytes()}, err
	case "git":
		meta, err := packGit(ctx, &b, v, root)
		return &Package{Version: v, Zip: b.Bytes(), Metadata: meta}, err
	}
	return nil, fmt.Errorf("%s: the source %s is not known; it is self or git", name, declared.Source.Kind)
}

// packGit packs what git tracks, and returns from which commit that is.
func packGit(ctx context.Context, w io.Writer, v module.Version, root string) (*modregistry.Metadata, error) {
	top, err := git(ctx, root, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	top = strings.TrimSpace(top)
	if err := clean(ctx, top, root); err != nil {
		return nil, err
	}
	listed, err := git(ctx, root, "ls-files", "-z", "--")
	if err != nil {
		return nil, err
	}
	var files []gitFile
	for name := range strings.SplitSeq(strings.Trim(listed, "\x00"), "\x00") {
		files = append(files, gitFile{name, filepath.Join(root, filepath.FromSlash(name))})
	}
	slices.SortFunc(files, func(a, b gitFile) int { return strings.Compare(a.name, b.name) })
	if license, err := licenseAbove(ctx, top, root, files); err != nil {
		return nil, err
	} else if license != "" {
		files = append(files, gitFile{"LICENSE", license})
	}
	if err := modzip.Create(w, v, files, gitFiles{}); err != nil { //nolint:staticcheck // cue mod publish makes the zip file by it
		return nil, err
	}
	commit, seconds, err := lastCommit(ctx, top)
	if err != nil {
		return nil, err
	}
	return &modregistry.Metadata{VCSType: "git", VCSCommit: commit, VCSCommitTime: time.Unix(seconds, 0)}, nil
}

func lastCommit(ctx context.Context, top string) (commit string, seconds int64, err error) {
	out, err := git(ctx, top, "-c", "log.showsignature=false", "log", "-1", "--format=%H:%ct")
	if err != nil {
		return "", 0, err
	}
	commit, text, _ := strings.Cut(strings.TrimSpace(out), ":")
	seconds, err = strconv.ParseInt(text, 10, 64)
	return commit, seconds, err
}

// licenseAbove returns the license of the repository if the module has none, or "".
func licenseAbove(ctx context.Context, top, root string, files []gitFile) (string, error) {
	name := filepath.Join(top, "LICENSE")
	resolved, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", err
	}
	if resolved == top || slices.ContainsFunc(files, func(f gitFile) bool { return f.name == "LICENSE" }) {
		return "", nil
	}
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return "", err
	}
	return name, clean(ctx, top, name)
}

// clean errors if something below a path is not committed.
func clean(ctx context.Context, top, path string) error {
	out, err := git(ctx, top, "status", "--porcelain", "--", path)
	if err != nil {
		return err
	}
	if changed := strings.TrimSpace(out); changed != "" {
		first, _, more := strings.Cut(changed, "\n")
		if more {
			first += ", and more"
		}
		return fmt.Errorf("not everything is committed: %s", first)
	}
	return nil
}

// git runs git in a folder.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(exit.Stderr)))
	}
	return string(out), err
}

// gitFile is a file that git tracks.
type gitFile struct{ name, path string }

// gitFiles reads such files.
type gitFiles struct{}

// Path implements modzip.FileIO.
func (gitFiles) Path(f gitFile) string { return f.name }

// Lstat implements modzip.FileIO.
func (gitFiles) Lstat(f gitFile) (fs.FileInfo, error) { return os.Lstat(f.path) }

// Open implements modzip.FileIO.
func (gitFiles) Open(f gitFile) (io.ReadCloser, error) { return os.Open(f.path) }

// ParseTarget returns where a reference with a tag says that a module is to be pushed.
func ParseTarget(reference string) (ociref.Reference, error) {
	ref, err := parse(reference, "")
	if err == nil && (ref.Tag == "" || ref.Digest != "") {
		err = errorf(Invalid, "%q names no tag: its version, such as v0.1.2", reference)
	}
	return ref, err
}

// Push pushes a module, with the credentials of the cue command, and returns the digest of its manifest. It errors
// with an Error.
func (c *Client) Push(ctx context.Context, p *Package, to ociref.Reference) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	at, err := c.openAsUser(to.Host, p.Version)
	if err != nil {
		return "", of(to.Host, err)
	}
	target := &pushTarget{Interface: at, repository: to.Repository, tag: to.Tag}
	client := modregistry.NewClientWithResolver(target)
	if err := client.PutModuleWithMetadata(ctx, p.Version, bytes.NewReader(p.Zip), int64(len(p.Zip)), p.Metadata); err != nil {
		return "", of(to.Host, causedBy(ctx, errors.Join(target.err, err)))
	}
	return target.digest, nil
}

// openAsUser returns the registry of a host, with the credentials that the cue command has for a module.
func (c *Client) openAsUser(host string, of module.Version) (ociregistry.Interface, error) {
	plain := plainHosts(host, c.options.Insecure)
	suffix := "+secure"
	if plain(host) {
		suffix = "+insecure"
	}
	resolver, err := modconfig.NewResolver(&modconfig.Config{
		Env: c.options.Env, CUERegistry: host + suffix, Transport: newTransport(c.options.Transport, plain), ClientType: "operetta",
	})
	if err != nil {
		return nil, errorf(Invalid, "%s is not the name of a registry", host)
	}
	at, err := resolver.ResolveToRegistry(of.BasePath(), of.Version())
	return at.Registry, err
}

// pushTarget is one place in a registry, which remembers the digest of what was pushed there, and what has gone
// wrong: the client wraps only the text of that.
type pushTarget struct {
	ociregistry.Interface

	repository, tag string
	digest          string
	err             error
}

// ResolveToRegistry implements modregistry.Resolver.
func (t *pushTarget) ResolveToRegistry(_, _ string) (modregistry.RegistryLocation, error) {
	return modregistry.RegistryLocation{Registry: t, Repository: t.repository, Tag: t.tag}, nil
}

// PushBlob implements ociregistry.Interface.
func (t *pushTarget) PushBlob(ctx context.Context, repo string, desc ociregistry.Descriptor, r io.Reader) (ociregistry.Descriptor, error) {
	out, err := t.Interface.PushBlob(ctx, repo, desc, r)
	t.err = errors.Join(t.err, err)
	return out, err
}

// PushManifest implements ociregistry.Interface.
func (t *pushTarget) PushManifest(ctx context.Context, repo, tag string, data []byte, mediaType string) (ociregistry.Descriptor, error) {
	out, err := t.Interface.PushManifest(ctx, repo, tag, data, mediaType)
	t.err, t.digest = errors.Join(t.err, err), string(out.Digest)
	return out, err
}
