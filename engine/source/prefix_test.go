package source_test

import (
	"testing"

	"operetta.dev/engine/source"
)

// TestMessagesShowFilesWhereTheyWereAndNotWhereTheyAre is about a package that somebody else has in another folder.
func TestMessagesShowFilesWhereTheyWereAndNotWhereTheyAre(t *testing.T) {
	t.Parallel()
	s, err := source.Loader{}.Folder(onDisk(t, keptModule) + "/cue/shop")
	if err != nil {
		t.Fatal(err)
	}
	other := s.WithDisplayPrefix("far/away")
	if got := other.Display("cue/shop/shop.cue"); got != "far/away/cue/shop/shop.cue" {
		t.Errorf("a file is shown as %s", got)
	}
	if got := s.Display("cue/shop/shop.cue"); got != "cue/shop/shop.cue" || s.DisplayPrefix() != "" {
		t.Errorf("the snapshot that it was made of shows %s", got)
	}
	if other.Digest() != s.Digest() || other.DisplayPrefix() != "far/away" {
		t.Errorf("it is the version %s, and %s before", other.Digest(), s.Digest())
	}
}
