// An application of React components: it shows the name in somebody's profile, lets them change it
// where it stands, and takes files for their pod.

import {
  CombinedDataProvider,
  FileUpload,
  LoginButton,
  LogoutButton,
  SessionProvider,
  Text,
  useSession,
} from "@inrupt/solid-ui-react";
import { useState } from "react";
import { createRoot } from "react-dom/client";

const NAME = "http://xmlns.com/foaf/0.1/name";
const page = new URL(location.pathname, location.href).href;

function SignIn({ tell }) {
  const [issuer, setIssuer] = useState("");
  return (
    <>
      <label>
        Provider <input value={issuer} onChange={(event) => setIssuer(event.target.value)} />
      </label>
      <LoginButton
        oidcIssuer={issuer}
        redirectUrl={page}
        authOptions={{ clientName: document.title }}
        onError={tell}
      >
        <button>Sign in</button>
      </LoginButton>
    </>
  );
}

function Profile({ webId, tell, leave }) {
  const [uploaded, setUploaded] = useState("");
  const folder = new URL("private/", webId).href;
  return (
    <>
      <p>
        Signed in: <output id="who">{webId}</output>
      </p>
      <CombinedDataProvider datasetUrl={webId} thingUrl={webId} onError={tell}>
        <Text property={NAME} edit autosave inputProps={{ "aria-label": "Name" }} onError={tell} />
      </CombinedDataProvider>
      <FileUpload
        saveLocation={folder}
        autosave
        inputProps={{ "aria-label": "File" }}
        onSave={() => setUploaded("saved")}
        onError={tell}
      />
      <output id="uploaded">{uploaded}</output>
      <LogoutButton onLogout={leave} onError={tell}>
        <button>Sign out</button>
      </LogoutButton>
    </>
  );
}

function Application() {
  const [problem, setProblem] = useState("");
  const tell = (error) => setProblem(error.message);
  // The context is not told of the end of a session: who signs out draws the page again.
  const [, draw] = useState(0);
  const leave = () => draw((times) => times + 1);
  const { isLoggedIn, webId } = useSession().session.info;
  return (
    <>
      {isLoggedIn ? <Profile webId={webId} tell={tell} leave={leave} /> : <SignIn tell={tell} />}
      <output id="problem">{problem}</output>
    </>
  );
}

createRoot(document.getElementById("root")).render(
  <SessionProvider restorePreviousSession>
    <Application />
  </SessionProvider>,
);
