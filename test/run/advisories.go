package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	// advisoryDB is what govulncheck asks.
	advisoryDB = "https://vuln.go.dev/index/modules.json"
	// govulncheck looks for known faults in what the program really calls.
	govulncheck = "golang.org/x/vuln/cmd/govulncheck@v1.1.4"
)

// advisories holds the modules to the advisories of the Go project. A machine from which
// their database cannot be reached says so and goes on: that is no fault of the source.
func advisories(ctx context.Context, j *job) error {
	if err := reachable(ctx, advisoryDB); err != nil {
		fmt.Fprintf(j.out, "govulncheck was NOT run, its database does not answer: %v\n", err)
		return nil
	}
	return j.exec(ctx, "go", "run", govulncheck, "./...")
}

// reachable asks for the head of a page.
func reachable(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", resp.Status)
	}
	return nil
}
