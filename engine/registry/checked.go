package registry

import (
	"context"
	"io"

	"cuelabs.dev/go/oci/ociregistry"
	"cuelabs.dev/go/oci/ociregistry/ocimem"
	"github.com/opencontainers/go-digest"
)

// checked is a registry whose contents are read at once, within the limits, and checked against the digests
// under which they were asked for: a client believes the digest that the registry says it has sent.
type checked struct {
	ociregistry.Interface
}

// GetBlob implements ociregistry.Interface.
func (c checked) GetBlob(ctx context.Context, repo string, d ociregistry.Digest) (ociregistry.BlobReader, error) {
	r, err := c.Interface.GetBlob(ctx, repo, d)
	if err != nil {
		return nil, err
	}
	out, data, err := readChecked(r, d)
	if err != nil {
		return nil, err
	}
	return out, checkZip(data)
}

// GetManifest implements ociregistry.Interface.
func (c checked) GetManifest(ctx context.Context, repo string, d ociregistry.Digest) (ociregistry.BlobReader, error) {
	r, err := c.Interface.GetManifest(ctx, repo, d)
	if err != nil {
		return nil, err
	}
	out, _, err := readChecked(r, d)
	return out, err
}

// GetTag implements ociregistry.Interface.
func (c checked) GetTag(ctx context.Context, repo, tag string) (ociregistry.BlobReader, error) {
	r, err := c.Interface.GetTag(ctx, repo, tag)
	if err != nil {
		return nil, err
	}
	out, _, err := readChecked(r, "")
	return out, err
}

// readChecked reads a content, and returns it also as its bytes. It errors if it is not the one that a digest names, unless
// that is "".
func readChecked(r ociregistry.BlobReader, want ociregistry.Digest) (ociregistry.BlobReader, []byte, error) {
	defer r.Close()
	data, err := io.ReadAll(r)
	got := digest.FromBytes(data)
	if want != "" && want.Algorithm().Available() {
		got = want.Algorithm().FromBytes(data)
	}
	// The client errors as well if the digest is wrong, with an error like any other. Then everything was read, as far as the
	// registry has said how much there is.
	if err == nil || int64(len(data)) == r.Descriptor().Size {
		if want == "" {
			want = r.Descriptor().Digest
		}
		if want != "" && got != want {
			return nil, nil, errorf(DigestMismatch, "it has sent %s in place of %s", got, want)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	desc := r.Descriptor()
	desc.Digest, desc.Size = got, int64(len(data))
	return ocimem.NewBytesReader(data, desc), data, nil
}
