// Numbers for people.

export const metres = (value) => (value < 9.95 ? `${value.toFixed(1)} m` : value < 9995 ? `${Math.round(value)} m` : `${(value / 1000).toFixed(1)} km`);
export const percent = (share) => (share >= 0.0995 || share === 0 ? `${Math.round(100 * share)} %` : `${(100 * share).toPrecision(2)} %`);
export const small = (value) => value.toPrecision(3);
export const put = (id, text) => { document.getElementById(id).textContent = text; };
