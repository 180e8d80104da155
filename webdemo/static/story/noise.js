// Planar Laplace noise in metres. Doubles, for teaching: their last bits can tell, so this is no promise; the library's draws are exact.

const noise = (() => {
  const STEP = 1; // reports end on a public lattice of this many metres

  // The branch W_-1 of w e^w = z, for -1/e <= z < 0: Halley's method from two well-known beginnings.
  function lambertMinusOne(z) {
    const above = 1 + Math.E * z;
    if (above <= 0) return -1;
    const root = -Math.sqrt(2 * above), far = Math.log(-z);
    let w = z < -0.25 ? -1 + root - root ** 2 / 3 + (11 / 72) * root ** 3 : far - Math.log(-far) + Math.log(-far) / far;
    for (let turn = 0; turn < 40; turn += 1) {
      const power = Math.exp(w), off = w * power - z;
      const step = off / (power * (w + 1) - ((w + 2) * off) / (2 * w + 2));
      if (!Number.isFinite(step)) break;
      w -= step;
      if (Math.abs(step) <= 1e-15 * Math.abs(w)) break;
    }
    return w;
  }

  // The radius that holds this share of all reports.
  const radiusQuantile = (share, epsilon) => -(lambertMinusOne((share - 1) / Math.E) + 1) / epsilon;
  const radiusShare = (radius, epsilon) => 1 - (1 + epsilon * radius) * Math.exp(-epsilon * radius);
  const meanRadius = (epsilon) => 2 / epsilon;

  // Uniform in the open interval from 0 to 1, from the browser's cryptographic generator.
  function uniform() {
    const [high, low] = crypto.getRandomValues(new Uint32Array(2));
    return ((high >>> 5) * 67108864 + (low >>> 6) + 0.5) / 9007199254740992;
  }

  // What a report needs by chance. Kept while a dial turns, so that the same noise grows and shrinks.
  const draw = () => ({ share: uniform(), angle: 2 * Math.PI * uniform() });

  function report(truth, epsilon, dice = draw()) {
    const radius = radiusQuantile(dice.share, epsilon);
    const snap = (value) => Math.round(value / STEP) * STEP;
    return { x: snap(truth.x + radius * Math.cos(dice.angle)), y: snap(truth.y + radius * Math.sin(dice.angle)) };
  }

  // Noise on a line, for the tests of a session.
  function laplace(scale) {
    const share = uniform();
    return share < 0.5 ? scale * Math.log(2 * share) : -scale * Math.log(2 - 2 * share);
  }
  const exponential = (scale) => -scale * Math.log(uniform());

  const epsilonFor = (factor, radius) => Math.log(factor) / radius;
  // Asked for a circle this large around the report, a service misses nothing with this confidence.
  const retrievalRadius = (interest, confidence, epsilon) => interest + radiusQuantile(confidence, epsilon);

  return { lambertMinusOne, radiusQuantile, radiusShare, meanRadius, uniform, draw, report, laplace, exponential, epsilonFor, retrievalRadius };
})();
