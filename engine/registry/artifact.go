package registry

import (
	"context"
	"io"
	"io/fs"

	"cuelabs.dev/go/oci/ociregistry"
	"cuelabs.dev/go/oci/ociregistry/ociauth"
	"cuelabs.dev/go/oci/ociregistry/ociclient"
	"cuelabs.dev/go/oci/ociregistry/ociref"
	"cuelang.org/go/mod/module"
	"operetta.dev/engine/signature"
)

// A Source is what is to be fetched.
type Source struct {
	// Reference names the module: registry.example.com/operators/shop:v0.1.2, or @sha256:... in place of the tag.
	Reference string
	// Digest pins the content, whatever the tag means by now; "" does not.
	Digest string
	// Credentials are a configuration of Docker, as a Secret of type kubernetes.io/dockerconfigjson has it. Only
	// the registry that an entry names gets it. Helpers that it names are not run.
	Credentials []byte
	// OfUser has the credentials be those of the cue command and of Docker on this machine, whose helpers are run.
	OfUser bool
	// Known is the digest of the content that the caller has, which was verified; if it is the one, there are no Files.
	Known string
	// Keys are keys of which one has to have signed the content, besides those of the policy; without any, none has to.
	Keys signature.Keys
}

// An Artifact is a module that was fetched.
type Artifact struct {
	// Digest is the digest of its manifest.
	Digest string
	// Module is the module with its version. A module without a tag that is one has the lowest version.
	Module string
	// Files are its CUE files, or nil if the Source knows them.
	Files fs.FS
	// Verified says with which signatures it was accepted; nil if the Source knows it.
	Verified *Verified
}

// The media types of the artifacts that the cue command publishes.
const (
	moduleType     = "application/vnd.cue.module.v1+json"
	moduleFileType = "application/vnd.cue.modulefile.v1"
)

// parse reads a reference and the digest that pins it.
func parse(reference, digest string) (ociref.Reference, error) {
	ref, err := ociref.Parse(reference)
	if err != nil {
		return ref, errorf(Invalid, "%q is not a reference, such as registry.example.com/operators/shop:v0.1.2", reference)
	}
	if digest != "" && !ociref.IsValidDigest(digest) {
		return ref, errorf(Invalid, "%q is not a digest", digest)
	}
	switch {
	case digest != "" && ref.Digest != "" && string(ref.Digest) != digest:
		return ref, errorf(Invalid, "the reference has another digest than %s", digest)
	case digest != "":
		ref.Digest = ociref.Digest(digest)
	case ref.Digest == "" && ref.Tag == "":
		return ref, errorf(Invalid, "%q has neither a tag nor a digest", reference)
	}
	return ref, nil
}

// Pinned reports whether a source means the same content forever.
func (s Source) Pinned() bool {
	ref, err := parse(s.Reference, s.Digest)
	return err == nil && ref.Digest != ""
}

// Fetch returns what a source names. It errors with an Error.
func (c *Client) Fetch(ctx context.Context, s Source) (*Artifact, error) {
	ref, err := parse(s.Reference, s.Digest)
	if err != nil {
		return nil, err
	}
	demands, err := c.requiredKeys(ref.Host+"/"+ref.Repository, s.Keys)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	from, err := c.openFor(ref.Host, s)
	if err != nil {
		return nil, err
	}
	out, err := fetch(ctx, from, wanted{Reference: ref, version: ref.Tag, known: s.Known, demands: demands})
	if err != nil {
		return nil, of(ref.Host, causedBy(ctx, err))
	}
	return out, nil
}

// openFor returns the registry of a host with the credentials of a source.
func (c *Client) openFor(host string, s Source) (ociregistry.Interface, error) {
	if !s.OfUser {
		return c.open(host, s.Credentials)
	}
	out, err := c.openAsUser(host, module.MustNewVersion("module.example@v0", "v0.0.0")) // the reference says where it is
	if err != nil {
		return nil, of(host, err)
	}
	return checked{out}, nil
}

// open returns the registry of a host.
func (c *Client) open(host string, credentials []byte) (ociregistry.Interface, error) {
	transport := newTransport(c.options.Transport, plainHosts(host, c.options.Insecure))
	if len(credentials) > 0 {
		config, err := credentialsOf(credentials)
		if err != nil {
			return nil, err
		}
		transport = ociauth.NewStdTransport(ociauth.StdTransportParams{Config: config, Transport: transport})
	} else {
		transport = ociauth.NewStdTransport(ociauth.StdTransportParams{Transport: transport}) // some want a token that everybody gets
	}
	plain := plainHosts(host, c.options.Insecure)(host)
	out, err := ociclient.New(host, &ociclient.Options{Transport: transport, Insecure: plain})
	if err != nil {
		return nil, errorf(Invalid, "%q is not the name of a host", host)
	}
	return checked{out}, nil
}

// credentialsOf reads a configuration of Docker. No other configuration is read, and no helper is run: whoever
// writes a Secret must not start programs.
func credentialsOf(data []byte) (ociauth.Config, error) {
	runner := func(string, string) (ociauth.ConfigEntry, error) {
		return ociauth.ConfigEntry{}, ociauth.ErrHelperNotFound
	}
	config, err := ociauth.LoadWithEnv(runner, []string{"DOCKER_AUTH_CONFIG=" + string(data)})
	if err != nil {
		return nil, errorf(Invalid, "the credentials are not a configuration of Docker") // the cause would quote them
	}
	return config, nil
}

// wanted is a module that is to be fetched from a registry.
type wanted struct {
	ociref.Reference

	// version is that of the module, or another tag.
	version string
	// known is the digest of a content that need not be fetched, or "".
	known string
	// demands are keys; one of each has to have signed.
	demands []signature.Keys
}

// fetch fetches a module. Nothing of it is read before it is known to be signed.
func fetch(ctx context.Context, from ociregistry.Interface, w wanted) (*Artifact, error) {
	if w.Digest != "" && string(w.Digest) == w.known {
		return &Artifact{Digest: w.known}, nil
	}
	r, err := manifestOf(ctx, from, w.Reference)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out := &Artifact{Digest: string(r.Descriptor().Digest)}
	if out.Digest == w.known {
		return out, nil
	}
	if out.Verified, err = verify(ctx, from, w.Reference, out.Digest, w.demands); err != nil {
		return nil, err
	}
	m, ok := readManifest(r)
	if !ok || m.Config.MediaType != moduleType || len(m.Layers) != 2 || m.Layers[1].MediaType != moduleFileType && m.Layers[1].ArtifactType != moduleFileType {
		return nil, errorf(NotModule, "%s is not a CUE module; operetta push and cue mod publish make one", w.Reference)
	}
	if m.Layers[0].Size > maxBlob {
		return nil, tooLarge(maxBlob)
	}
	blob, err := from.GetBlob(ctx, w.Repository, m.Layers[0].Digest)
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	data, err := io.ReadAll(blob)
	if err != nil {
		return nil, err
	}
	files, version, err := unpack(data, w.version)
	if err != nil {
		return nil, err
	}
	out.Files, out.Module = files, version.String()
	return out, nil
}

func manifestOf(ctx context.Context, from ociregistry.Interface, ref ociref.Reference) (ociregistry.BlobReader, error) {
	if ref.Digest != "" {
		return from.GetManifest(ctx, ref.Repository, ref.Digest)
	}
	return from.GetTag(ctx, ref.Repository, ref.Tag)
}
