package top

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// maxPage bounds what is read of a page; the largest has some tens of kilobytes.
const maxPage = 8 << 20

// Source is a page of the proxy. The zero value is a page that there is none of.
type Source struct {
	URL    string
	Client *http.Client // its timeout bounds each question
}

// read returns the page.
func (s Source) read(ctx context.Context) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return nil, err
	}
	resp, err := s.Client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", s.URL, resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxPage))
}
